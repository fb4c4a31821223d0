"""Whether a target has what a scenario needs."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.specifiers import SpecifierSet

from conformance.scenario.base import parse_release
from conformance.scenario.changes import KUBELET, AccountName
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.expectations.container_environment import EnvironmentExpectation
from conformance.scenario.expectations.container_hardware import (
    DeviceNodesExpectation,
    HardwareExpectation,
)
from conformance.scenario.lint.manifest_claims import pod_specs
from conformance.scenario.model import Spec
from conformance.scenario.steps import Step
from conformance.seam.abilities import Ability
from conformance.seam.values import Capabilities
from kube.base.text import counted
from reference_allocator.gates import list_fixed_gates


def reason_to_skip(
    spec: Spec,
    capabilities: Capabilities,
    profile: DriverProfile | None,
    other: DriverProfile | None = None,
) -> str | None:
    """Why the scenario cannot run on the target, None if it can.

    ``other``: the profile of another driver on the same nodes.
    """
    needs, free = spec.requires, capabilities.free
    if spec.tier not in capabilities.tiers:
        why = capabilities.unserved.get(spec.tier, "")
        return f"tier {spec.tier} is not served by this target" + (f": {why}" if why else "")
    if not is_in(capabilities.kubernetes_version, needs.kubernetes):
        return f"needs Kubernetes {needs.kubernetes}, this is {capabilities.kubernetes_version}"
    if unfit := _not_of_the_scheduler(spec, capabilities):
        return unfit
    for api in needs.apis:
        if api not in capabilities.served_apis:
            return f"API {api} is not served"
    for gate in (*needs.feature_gates, *needs.feature_gates_off):
        on = capabilities.feature_gates.get(gate)
        if on is None:
            return (
                f"whether the feature gate {gate} is on is not known: neither the API server's"
                " /metrics nor a dry run says"
            )
        if on is not (gate in needs.feature_gates):
            return f"feature gate {gate} is {'on' if on else 'off'}"
    for gate in (gate for step in spec.steps if step.fault for gate in step.fault.feature_gates):
        for version in (capabilities.kubernetes_version, capabilities.scheduling[0]):
            if gate in list_fixed_gates(version):
                return f"feature gate {gate} is locked in Kubernetes {version}"
    accounts = {_ability_for(name) for name in spec.accounts}
    for ability in (*needs.abilities, *sorted(accounts)):
        if (lack := capabilities.explain_lack(ability)) is not None:
            return f"not supported by this target: {ability}" + (f": {lack}" if lack else "")
    if spec.nodes and (refused := capabilities.lacking.get(Ability.HOLLOW_NODES)):
        return f"not supported by this target: {Ability.HOLLOW_NODES}: {refused}"
    if spec.tier != "allocation":
        if old := _not_of_the_kubelets(spec, capabilities):
            return old
        if profile is None or capabilities.driver != profile.driver:
            return "no driver profile for the driver of this target"
        lacking = _not_of_the_driver(spec, profile)
        if lacking is not None:
            return f"driver profile {profile.metadata.name} {lacking}"
        if needs.other_devices:
            lacking = _not_of_the_other(spec, capabilities, other)
            if lacking is not None:
                return lacking
        if needs.devices_in_all > free.total:
            why = f": {free.why_none}" if free.why_none else ""
            return f"needs {counted(needs.devices_in_all, 'device')}, {free.total} available{why}"
        most = max(free.by_node.values(), default=0)
        if needs.devices_on_one_node > most:
            return (
                f"needs {needs.devices_on_one_node} devices on one node, no node has more than"
                f" {most} free"
            )
        different = max({**free.by_node, **free.different_by_node}.values(), default=0)
        if needs.devices_in_one_request > different:
            return (
                f"needs {needs.devices_in_one_request} different devices on one node, no node has"
                f" more than {different} free"
            )
        if needs.nodes > len(capabilities.nodes):
            return f"needs {needs.nodes} nodes with a kubelet, {len(capabilities.nodes)} available"
    return None


def _ability_for(account: AccountName) -> Ability:
    return Ability.KUBELET_ACCOUNT if account == KUBELET else Ability.IMPERSONATION


def is_scheduled(spec: Spec) -> bool:
    """Return whether a step makes pods that a scheduler must find a node for."""
    return any(map(_has_pods, spec.steps))


def _has_pods(step: Step) -> bool:
    specs = (spec for obj in step.apply or () for _, spec in pod_specs(obj))
    return step.churn is not None or any("nodeName" not in spec for spec in specs)


def _not_of_the_scheduler(spec: Spec, capabilities: Capabilities) -> str | None:
    """What a scenario needs of the scheduler's version, and it is not."""
    version, needs = capabilities.scheduling[0], spec.requires
    if needs.scheduler and not is_in(version, needs.scheduler):
        return f"needs a scheduler of Kubernetes {needs.scheduler}, this is {version}"
    if not capabilities.scheduler_version or not is_scheduled(spec):
        return None
    if not needs.scheduler and not is_in(version, needs.kubernetes):
        return f"needs Kubernetes {needs.kubernetes}, the scheduler is {version}"
    for gate in needs.feature_gates:
        if capabilities.scheduler_gates.get(gate) is False:
            return f"feature gate {gate} is off in the scheduler, {version}"
    return None


def _not_of_the_kubelets(spec: Spec, capabilities: Capabilities) -> str | None:
    """What a scenario needs and kubelets that are older than the API server lack."""
    old, needs = capabilities.kubelet_version, spec.requires
    if not old:
        return None
    if not is_in(old, needs.kubernetes):
        return f"needs Kubernetes {needs.kubernetes}, the oldest kubelet is {old}"
    for gate in needs.feature_gates:
        if capabilities.kubelet_gates.get(gate) is False:
            return f"feature gate {gate} is off in the oldest kubelet, {old}"
    return None


def _not_of_the_other(
    spec: Spec, capabilities: Capabilities, other: DriverProfile | None
) -> str | None:
    """What a scenario needs of another driver and is missing."""
    if other is None or capabilities.other_driver != other.driver:
        return "needs another driver on the same nodes; --other-driver gives the profile of one"
    for trait in spec.requires.traits:
        if trait not in other.spec.traits:
            return f"driver profile {other.metadata.name} does not declare the driver trait {trait}"
    if not usable_nodes(spec, capabilities):
        return (
            f"needs a node with {counted(spec.requires.other_devices, 'free device')} of"
            f" {other.driver} beside {max(1, spec.requires.devices_on_one_node)} of"
            f" {capabilities.driver}; there is none"
        )
    return None


def usable_nodes(spec: Spec, capabilities: Capabilities) -> Mapping[str, int]:
    """Node -> number of free devices of the driver, on nodes with those that are needed of another.

    All nodes with devices if no other driver is needed.
    """
    needs, free = spec.requires, capabilities.free
    if not needs.other_devices:
        return free.by_node
    least = max(1, needs.devices_on_one_node)
    return {
        node: count
        for node, count in free.by_node.items()
        if count >= least and free.other_by_node.get(node, 0) >= needs.other_devices
    }


def is_in(version: str, versions: str) -> bool:
    """Whether a Kubernetes version is in a range like ``>=1.35``; an invalid one is in none."""
    parsed = parse_release(version)
    return parsed is not None and SpecifierSet(versions).contains(parsed)


def _not_of_the_driver(spec: Spec, profile: DriverProfile) -> str | None:
    """What a scenario needs of the driver and its profile does not declare."""
    for need in spec.requires.of_the_driver:
        if need in profile.spec.cannot:
            return f"says that the driver cannot {need}: {profile.spec.cannot[need]}"
    for trait in spec.requires.traits:
        if trait not in profile.spec.traits:
            off = profile.suggest_option("traits", trait)
            return f"does not declare the driver trait {trait}{off}"
    for name in spec.requires.config:
        if name not in profile.spec.config:
            return f"has no config {name}{profile.suggest_option('config', name)}"
    for name in spec.requires.attributes:
        if name not in profile.spec.attributes:
            return f"names no attribute {name}"
    for name in spec.requires.capacity:
        if name not in profile.spec.capacity:
            return f"names no capacity {name}"
    for health in (step.stimulate.health for step in spec.steps if step.stimulate):
        if profile.spec.stimulus is None or health not in profile.spec.stimulus.health:
            return f"has no stimulus that makes a device {health}"
    for expectation in (item for step in spec.steps for item in step.expect or ()):
        if isinstance(expectation, EnvironmentExpectation):
            config = expectation.environment.config
            if config is None and profile.spec.probe.claim_env is None:
                return "does not define how containers show claims (probe.claimEnv)"
            if config is not None and config not in profile.spec.probe.config_env:
                return f"does not define how containers show config {config} (probe.configEnv)"
        opens = isinstance(expectation, DeviceNodesExpectation)
        if opens and not profile.spec.probe.shows_device_nodes:
            return "does not declare device files in containers (probe.deviceNodes)"
        if isinstance(expectation, HardwareExpectation):
            name = expectation.hardware.command
            if name not in profile.spec.probe.hardware:
                return f"has no command {name} that shows hardware (probe.hardware)"
    return None
