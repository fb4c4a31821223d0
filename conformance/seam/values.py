"""What crosses the seam between scenarios and targets: what a target is, has and can do.

Kubernetes objects cross it as plain JSON (``dict`` with the API's camelCase names, ``apiVersion``
and ``kind`` always set). The protocols themselves are in :mod:`conformance.seam.scope`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

from conformance.seam.abilities import Ability
from kube.simulated import SIMULATED_ATTRIBUTE
from kube.values import Obj
from reference_allocator.gates import describe_rules

WORKER_LABEL = "dra-conformance.dev/worker"
"""The pytest-xdist worker that made an object, beside the run's label."""

CONSTRAINTS = "security.openshift.io/v1"
"""Where it is served, namespaces get a range of users a moment after they were made, and containers
may have no other one."""

SCENARIO_LABEL = "dra-conformance.dev/scenario"

T = TypeVar("T")

Tier = Literal["allocation", "node", "device"]


class OneDevice(NamedTuple):
    """A device that can be asked for alone.

    Attributes:
        selector: CEL that no other device of the driver fits.
        shared: two or more claims may have shares of it now.
    """

    name: str
    selector: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class FreeDevices:
    """The devices that scenarios could have now, none until ``targets.opening.offer`` counts them.

    Attributes:
        total: how many devices of the driver may be used at once.
        by_node: node -> how many of them may be used there at once. A device that can be used from
            several nodes counts on each, one that claims may share as often as they may.
        different_by_node: node -> how many different devices these are, where some are shares of
            one; a request for several gets as many.
        other_by_node: node -> how many devices of the other driver may be used there. A target that
            starts that driver for scenarios says so before anything is counted.
        last_by_node: node -> the device that is allocated last there, where an attribute tells it
            from all others of the driver.
        abilities: what can be done with these devices, beside using them.
        lacking: ability -> why these devices do not give it.
        why_none: why none is free; empty if one is.
    """

    total: int = 0
    by_node: Mapping[str, int] = field(default_factory=dict)
    different_by_node: Mapping[str, int] = field(default_factory=dict)
    other_by_node: Mapping[str, int] = field(default_factory=dict)
    last_by_node: Mapping[str, OneDevice] = field(default_factory=dict)
    abilities: frozenset[Ability] = frozenset()
    lacking: Mapping[str, str] = field(default_factory=dict)
    why_none: str = ""

    def select_nodes(self, nodes: Collection[str]) -> FreeDevices:
        """Return the free devices as if there were no other nodes than these."""
        by_node = _select(self.by_node, nodes)
        return replace(
            self,
            total=sum(by_node.values()),
            by_node=by_node,
            different_by_node=_select(self.different_by_node, nodes),
            other_by_node=_select(self.other_by_node, nodes),
            last_by_node=_select(self.last_by_node, nodes),
        )


def _select(by_node: Mapping[str, T], nodes: Collection[str]) -> dict[str, T]:
    return {node: value for node, value in by_node.items() if node in nodes}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target is and can do; decides which scenarios run on it.

    Attributes:
        kubernetes_version: of the API server, for example ``1.37.1``.
        kubelet_version: of the oldest kubelet of ``nodes``; empty if it is of the same minor.
        kubelet_gates: kubelets' feature gates that may not be as the API server's.
        scheduler_version: of the scheduler of scenarios' pods; empty if it is the API server's.
        scheduler_gates: that scheduler's DRA gates, where it is of another version.
        served_apis: group/versions, for example ``resource.k8s.io/v1``, ``v1``.
        unserved: tier -> why it is not served, where there is more to say than that.
        driver: the driver whose devices the ``node`` tier uses, None without one.
        nodes: nodes with a kubelet that the suite may use.
        other_driver: another driver, whose devices are on the same nodes; None without one.
        abilities: further things it can do, whatever is free: an
            :class:`~conformance.seam.abilities.Ability`, or one that names a component.
        lacking: ability -> why it is not there, where there is more to say than that.
        feature_gates: gates that are known to be on or off; a gate that is not in it is unknown.
        concurrent: several scenarios can run at once, as its time is not virtual.
        simulated: what is simulated, in words, for reports; empty where nothing is.
        versions: component versions for reports (kubernetes, containerd, driver, reference, ...).
        free: the devices that scenarios of the ``node`` tier could have now.
    """

    kubernetes_version: str
    served_apis: frozenset[str]
    tiers: frozenset[Tier]
    unserved: Mapping[Tier, str] = field(default_factory=dict)
    driver: str | None = None
    nodes: tuple[str, ...] = ()
    other_driver: str | None = None
    abilities: frozenset[str] = frozenset()
    lacking: Mapping[str, str] = field(default_factory=dict)
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    concurrent: bool = False
    simulated: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    kubelet_version: str = ""
    kubelet_gates: Mapping[str, bool] = field(default_factory=dict)
    scheduler_version: str = ""
    scheduler_gates: Mapping[str, bool] = field(default_factory=dict)
    free: FreeDevices = field(default_factory=FreeDevices)

    @property
    def scheduling(self) -> tuple[str, Mapping[str, bool]]:
        """The Kubernetes version and the gates by which the scheduler decides about devices."""
        if self.scheduler_version:
            return self.scheduler_version, self.scheduler_gates
        return self.kubernetes_version, self.feature_gates

    def explain_lack(self, ability: str) -> str | None:
        """Return why an ability is not there now, "" if there is no more to say; None if it is."""
        if ability in self.abilities or ability in self.free.abilities:
            return None
        return self.free.lacking.get(ability) or self.lacking.get(ability, "")


SCHEDULER_VERSION = "scheduler"
"""Name, in the versions of reports, of a scheduler whose version is not the API server's."""


def describe_scheduler(version: str) -> dict[str, str]:
    """Return what reports say of a scheduler of another version; {} where it is the API server's.

    Claims are judged by the rules of its minor, which are named where they are not a release's.
    """
    if not version:
        return {}
    rules = describe_rules(version).get("rules")
    return {SCHEDULER_VERSION: version, **({"scheduler's rules": rules} if rules else {})}


def simulated_devices(driver: str | None, slices: Iterable[Obj]) -> list[str]:
    """In words, that a driver's devices are simulated, where its slices say so themselves."""
    for item in slices:
        if item["spec"].get("driver") != driver:
            continue
        for device in item["spec"].get("devices") or []:
            # v1beta1 has the attributes one level deeper.
            attributes = (device.get("basic") or device).get("attributes") or {}
            if (attributes.get(SIMULATED_ATTRIBUTE) or {}).get("bool"):
                return [f"the devices of {driver}"]
    return []
