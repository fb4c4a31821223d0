"""What a cluster is and can do, asked of its API server and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from packaging.version import Version

from conformance.scenario.expectations.conditions import explain_differences
from conformance.scenario.registry import GateProbe, load_registry
from conformance.seam.abilities import Ability, fault_ability, metrics_ability
from conformance.seam.values import (
    CONSTRAINTS,
    Capabilities,
    Tier,
    describe_scheduler,
    simulated_devices,
)
from conformance.targets.cluster.accounts import (
    why_no_accounts,
    why_no_hollow_nodes,
    why_no_kubelet_account,
)
from conformance.targets.cluster.reading import explain_no_metrics
from kube.api import Api
from kube.base.errors import TargetError
from kube.components import START_ORDER
from kube.connection import Connection
from kube.errors import ApiError
from kube.nodes import is_ready
from kube.observations import CONTROL_PLANE
from kube.values import Obj
from reference_allocator.gates import (
    describe_rules,
    kubelet_gates,
    list_dependencies,
    list_fixed_gates,
    scheduler_gates,
)

_LOCAL_ONLY = {
    **dict.fromkeys(
        map(fault_ability, START_ORDER), "components are disturbed on local clusters only"
    ),
    **dict.fromkeys(
        map(metrics_ability, CONTROL_PLANE),
        "the control plane's metrics are read on local clusters only",
    ),
    Ability.POD_RESOURCES: "kubelets are asked by their sockets on local clusters only",
    Ability.UPGRADE: "components are upgraded on local clusters only, with --upgrade-to",
    Ability.FEATURE_GATES: "other feature gates are set on local clusters only",
    Ability.DEVICE_HEALTH: "devices get unhealthy on local clusters only, where the driver has made"
    " the file that its profile names (stimulus)",
}
"""Ability -> why it is not there."""

_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)")


def discover_capabilities(
    api: Api,
    *,
    nodes: Sequence[str],
    driver: str | None,
    abilities: Iterable[str],
    versions: Mapping[str, str],
    scheduler: str = "",
    only_read: bool = False,
) -> Capabilities:
    """Return what scenarios may count on.

    Args:
        api: where to ask.
        nodes: nodes with a kubelet that the suite may use; those that are ready count.
        driver: the driver of the ``node`` tier.
        versions: versions of parts that the cluster's source knows and no node reports.
        scheduler: the scheduler's version; empty if it is the API server's.
        only_read: find out by reading alone; more feature gates stay unknown.

    Raises ApiError: something that is needed may not be read; TargetError: no answer.
    """
    git_version, version = server_versions(api)
    ready = [node for node in api.list(api.discovery.find("v1", "Node")) if is_ready(node)]
    usable = [node for node in ready if node["metadata"]["name"] in nodes]
    slices = api.discovery.find(api.discovery.dra_version(), "ResourceSlice")
    simulated = simulated_devices(driver, api.list(slices)) if driver else ()
    tiers: set[Tier] = {"allocation"}
    can = set(abilities)
    names = tuple(sorted(node["metadata"]["name"] for node in usable))
    lacking = {name: why for name, why in _LOCAL_ONLY.items() if name not in can}
    if refused := why_no_accounts(api):
        lacking[Ability.IMPERSONATION] = refused
    else:
        can.add(Ability.IMPERSONATION)
    if refused := why_no_kubelet_account(api, only_read=only_read):
        lacking[Ability.KUBELET_ACCOUNT] = refused
    else:
        can.add(Ability.KUBELET_ACCOUNT)
    if refused := why_no_hollow_nodes(api):
        lacking[Ability.HOLLOW_NODES] = refused
    if usable:
        can.add(Ability.IMAGE)
        if CONSTRAINTS in api.discovery.list_served():
            lacking[Ability.ROOT_CONTAINERS] = (
                "OpenShift's constraints admit no root and no capabilities"
            )
        else:
            can.add(Ability.ROOT_CONTAINERS)
        if driver is not None:
            tiers |= {"node", "device"}
            why = explain_no_metrics(api.connection, names)
            if why:
                lacking[Ability.KUBELET_METRICS] = why
            else:
                can.add(Ability.KUBELET_METRICS)
    gates = feature_gates(api, version, only_read=only_read)
    oldest = _oldest_kubelet(usable, version)
    return Capabilities(
        kubernetes_version=version,
        served_apis=api.discovery.list_served(),
        tiers=frozenset(tiers),
        driver=driver,
        nodes=names,
        abilities=frozenset(can),
        lacking=lacking,
        feature_gates=gates,
        concurrent=True,
        simulated=tuple(simulated),
        versions={
            "kubernetes": git_version,
            **describe_rules(version),
            **_node_versions(usable),
            **versions,
            **describe_scheduler(scheduler),
        },
        kubelet_version=oldest,
        kubelet_gates=kubelet_gates(version, gates, oldest) if oldest else {},
        scheduler_version=scheduler,
        scheduler_gates=scheduler_gates(version, gates, scheduler) if scheduler else {},
    )


def server_versions(api: Api) -> tuple[str, str]:
    """Return ``gitVersion`` and its numbers, such as ``1.37.1``. Raises ApiError or TargetError."""
    git_version = str(api.connection.request("GET", "/version").get("gitVersion", ""))
    matched = _VERSION.match(git_version)
    return git_version, matched[1] if matched else git_version


def _oldest_kubelet(nodes: Iterable[Obj], server: str) -> str:
    """Return the oldest kubelet's version if its minor is not the API server's; else ""."""
    reported = (_info(node).get("kubeletVersion", "") for node in nodes)
    kubelet_versions = {matched[1] for text in reported if (matched := _VERSION.match(text))}
    oldest = min(kubelet_versions, key=Version, default="")
    return oldest if oldest.split(".")[:2] != server.split(".")[:2] else ""


def _info(node: Obj) -> Mapping[str, str]:
    return (node.get("status") or {}).get("nodeInfo") or {}


def _node_versions(nodes: Iterable[Obj]) -> dict[str, str]:
    versions: dict[str, set[str]] = {}
    for node in nodes:
        info = _info(node)
        runtime, _, version = info.get("containerRuntimeVersion", "").partition("://")
        for name, value in (
            ("kubelet", info.get("kubeletVersion")),
            (runtime, version),
            ("kernel", info.get("kernelVersion")),
            ("os", info.get("osImage")),
        ):
            if name and value:
                versions.setdefault(name, set()).add(value)
    return {name: ", ".join(sorted(values)) for name, values in versions.items()}


_METRIC = re.compile(rb'^kubernetes_feature_enabled\{name="([^"]+)"[^}]*\} ([01])', re.MULTILINE)
_NAMESPACE = "default"  # Of namespaced objects; it is there in every cluster.


def feature_gates(api: Api, version: str, *, only_read: bool = False) -> dict[str, bool]:
    """Return the gates that are known to be on or off; any other is unknown.

    The API server's metrics say it. Where they may not be read, gates that are locked in this minor
    are known, and most others show in what the API server keeps of an object created with dry run
    (``scenarios/features.yaml``): fields behind a gate that is off are dropped silently
    (``dropDisabledFields`` in pkg/registry/resource).
    Raises TargetError: no answer.
    """
    reported_gates = _read_enabled_gates(api.connection)
    gates = {**list_fixed_gates(version), **reported_gates}
    if reported_gates or only_read:
        return gates
    features = load_registry().features.values()
    for feature in features:
        if feature.gate is not None and feature.probe is not None and feature.gate not in gates:
            on = probe_gate(api, feature.probe)
            if on is not None:
                gates[feature.gate] = on
            if on:
                gates |= dict.fromkeys(list_dependencies(feature.gate), True)
    return gates


def probe_gate(api: Api, gate_probe: GateProbe) -> bool | None:
    """Return whether the API server keeps all that an object says; None if that cannot be seen."""
    api_version, kind = gate_probe.object["apiVersion"], gate_probe.object["kind"]
    try:
        resource = api.discovery.find(api_version, kind)
        path = resource.path(_NAMESPACE if resource.namespaced else None)
        # Not strict: an older API server does not have the field at all.
        query = {"dryRun": "All", "fieldValidation": "Ignore"}
        stored = api.connection.request("POST", path, query, dict(gate_probe.object))
    except ApiError as error:
        return gate_probe.on_if_invalid if error.code == 422 else None
    return not any(explain_differences(gate_probe.object, stored))


def _read_enabled_gates(connection: Connection) -> Mapping[str, bool]:
    """Return what the API server's metrics say; nothing where they may not be read."""
    try:
        text = connection.read_text("GET", "/metrics", accept="text/plain", patience=5.0)
    except (ApiError, TargetError):
        return {}
    return {name.decode(): value == b"1" for name, value in _METRIC.findall(text)}
