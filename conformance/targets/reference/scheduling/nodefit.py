"""Whether a node suits a pod, devices aside, and what the scheduler says where it does not.

The texts are those of the scheduler's plugins (pkg/scheduler/framework/plugins/*).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from conformance.clusters.base import is_ready
from conformance.targets.reference import pods
from conformance.targets.seam.values import Obj
from reference_allocator.allocatable import demand
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.rules.node_eligibility import node_problem

NO_NODES: Final = "no nodes available to schedule pods"
_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a node does not suit.

    Attributes:
        resolvable: whether removing pods could help (Unschedulable as opposed to
            UnschedulableAndUnresolvable).
    """

    reason: str
    resolvable: bool = False


def misfits(
    pod: Obj, node: Obj, others: Sequence[Obj], backed_by_devices: frozenset[str]
) -> list[Misfit]:
    """Why a pod cannot run on a node; empty if it can.

    ``backed_by_devices``: extended resources that a DeviceClass provides.

    Raises:
        InputError: an object has not the form of its kind.
        AllocationError: a node selector does not parse.
    """
    spec = node.get("spec") or {}
    if not is_ready(node):
        # What the node lifecycle controller sees to in a cluster.
        spec = {**spec, "taints": [*(spec.get("taints") or []), _NOT_READY]}
    problem = node_problem({**node, "spec": spec}, pod["spec"])
    if problem is not None:
        return [Misfit(problem)]
    return _lacking(pod, node, others, backed_by_devices)


def prefilter_message(nodes: int, reason: str) -> str:
    """No node was looked at, for a reason that concerns the pod itself."""
    return f"0/{nodes} nodes are available: {reason}. {_preemption({}, nodes)}"


def filter_message(nodes: Mapping[str, Sequence[Misfit]], preemption: str = "") -> str:
    """Each node was looked at.

    Args:
        nodes: node -> why it does not suit.
        preemption: what became of making room, empty where there was nothing to be gained.
    """
    reasons = [misfit.reason for misfits in nodes.values() for misfit in misfits]
    return (
        f"0/{len(nodes)} nodes are available: {_histogram(reasons)}. "
        f"{preemption or _preemption(nodes, len(nodes))}"
    )


def _preemption(nodes: Mapping[str, Sequence[Misfit]], total: int) -> str:
    helpful = sum(1 for misfits in nodes.values() if misfits and all(m.resolvable for m in misfits))
    reasons = ["No preemption victims found for incoming pod"] * helpful
    reasons += ["Preemption is not helpful for scheduling"] * (total - helpful)
    return f"preemption: 0/{total} nodes are available: {_histogram(reasons)}."


def _histogram(reasons: Sequence[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def _lacking(
    pod: Obj, node: Obj, others: Sequence[Obj], backed_by_devices: frozenset[str]
) -> list[Misfit]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    used = sum(map(requests, others), Counter[str]())
    found = []
    if len(others) + 1 > amount_of(allocatable.get("pods", "0")):
        found.append(Misfit("Too many pods", resolvable=True))
    for name, amount in requests(pod).items():
        free = amount_of(allocatable.get(name, "0")) - used[name]
        from_devices = name in backed_by_devices and not amount_of(allocatable.get(name, "0"))
        if amount > free and not from_devices:
            never = amount > amount_of(allocatable.get(name, "0"))
            found.append(Misfit(f"Insufficient {name}", resolvable=not never))
    return found


def requests(pod: Obj) -> Counter[str]:
    """What a pod takes of its node, in units of 1e-9.

    That is what its containers ask for, and what its devices take of the node's own resources,
    once that is in its status.
    """
    taken = (pod.get("status") or {}).get("nodeAllocatableResourceClaimStatuses") or []
    of_devices = {name: quantity.nanos for name, quantity in demand(taken).items()}
    return pods.requests(pod) + Counter(of_devices)


def amount_of(quantity: str) -> int:
    """A quantity in units of 1e-9."""
    return parse_quantity(quantity).nanos
