"""What a scenario needs of the target and disrupts there, read from its document."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from conformance.scenario.expectations.base import Timed
from conformance.scenario.expectations.objects import ObjectsExpectation
from conformance.scenario.model import Spec
from kube.components import OF_A_NODE, OTHER_DRIVER, role_of


class Reach(IntEnum):
    """Whom a scenario disrupts.

    Members:
        NOBODY: it stops and restarts nothing.
        NODE: those whose pods run on its node: it stops a driver, kubelet or containerd, reboots
            a node, or starts a second driver there.
        CLUSTER: everybody: it stops a component of the control plane.
    """

    NOBODY = 0
    NODE = 1
    CLUSTER = 2


@dataclass(frozen=True, slots=True)
class Needs:
    """What the schedule must know of a scenario.

    Attributes:
        uses_nodes: its pods run on real nodes. Those of the tier allocation have no kubelet, so
            faults of nodes do not disrupt it.
        exclusive: it depends on how many devices are free, so nobody else may use any beside it.
        devices: how many it uses at once.
        devices_on_one_node: how many of these must be on the same node.
        all_nodes: it looks at the ResourceSlices of all nodes.
        seconds: how long it is known to take: what it lets pass, and what it waits for long.
    """

    uses_nodes: bool = False
    disrupts: Reach = Reach.NOBODY
    exclusive: bool = False
    devices: int = 0
    devices_on_one_node: int = 0
    all_nodes: bool = False
    seconds: float = 0.0

    @classmethod
    def of(cls, spec: Spec) -> Needs:
        roles = disrupted_roles(spec)
        uses_nodes = spec.tier != "allocation"
        return cls(
            uses_nodes=uses_nodes,
            disrupts=(
                Reach.NOBODY if not roles else Reach.NODE if roles <= OF_A_NODE else Reach.CLUSTER
            ),
            exclusive=spec.requires.exclusive,
            devices=spec.requires.devices_in_all,
            devices_on_one_node=spec.requires.devices_on_one_node,
            all_nodes=uses_nodes and _looks_at_all_slices(spec),
            seconds=least_seconds(spec) + _long_waits(spec),
        )


def disrupted_roles(spec: Spec) -> frozenset[str]:
    """Roles of the components that a scenario stops or restarts, or starts for itself."""
    started_roles = frozenset({OTHER_DRIVER} if spec.requires.other_devices else ())
    return started_roles.union(role_of(step.fault.component) for step in spec.steps if step.fault)


def last_disruption(spec: Spec) -> int | None:
    """Index of the step after which all components run as before; None if that is never so.

    A second driver runs until the scenario ends.
    """
    if spec.requires.other_devices:
        return None
    faults = {index: step.fault for index, step in enumerate(spec.steps) if step.fault}
    missing: set[str] = set()
    added: set[str] = set()
    gated: set[tuple[str, str]] = set()
    for fault in faults.values():
        component = fault.component
        for gate, on in fault.feature_gates.items():
            (gated.discard if on else gated.add)((component, gate))
        if fault.action in {"kill", "stop"}:
            missing.add(component)
        elif fault.action in {"startNext", "startUnregistered"}:
            added.add(component)
        elif fault.action == "killNext":
            added.discard(component)
        else:
            missing.discard(component)
            added.discard(component)
    return max(faults) if faults and not (missing or added or gated) else None


def least_seconds(spec: Spec) -> float:
    """How long a scenario takes at least: the times of ``wait``, churn and ``consistently``."""
    expected = (item for step in spec.steps for item in step.expect or ())
    stay = sum(item.must_stay for item in expected if isinstance(item, Timed))
    return sum(step.seconds for step in spec.steps) + stay * spec.timeouts.consistently


def _long_waits(spec: Spec) -> float:
    """How many seconds a scenario waits for what comes late, guessed from its own limits.

    Who gives an expectation a longer limit than usual has met the wait, and leaves room for twice
    as much.
    """
    limits = (
        item.eventually or 0.0
        for step in spec.steps
        for item in step.expect or ()
        if isinstance(item, Timed)
    )
    return sum(limit for limit in limits if limit > spec.timeouts.eventually) / 3


def _looks_at_all_slices(spec: Spec) -> bool:
    """Whether a scenario looks for ResourceSlices without naming a node."""
    return any(
        item.objects.kind == "ResourceSlice"
        and not item.objects.owned_by
        and "spec.nodeName" not in (item.objects.fields or {})
        for step in spec.steps
        for item in step.expect or ()
        if isinstance(item, ObjectsExpectation)
    )
