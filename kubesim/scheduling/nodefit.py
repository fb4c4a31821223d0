"""Checks whether a node suits a pod, devices aside, and says what the scheduler says if not.

The texts are those of the scheduler's plugins (pkg/scheduler/framework/plugins/*). What devices
take of a node's CPU and memory follows calculateAndCheckNodeAllocatableResources of the plugin
dynamicresources (nodeallocatabledynamicresources.go, gate DRANodeAllocatableResources); the rules
are in ``reference_allocator.allocatable``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kube.nodes import is_ready
from kube.values import Obj
from kubesim import pods
from kubesim.store import name_of
from reference_allocator import allocatable, api
from reference_allocator.allocatable import PodClaim, sum_demand
from reference_allocator.api.quantity import Quantity, parse_quantity
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


STALE_EXTENDED_CLAIM: Final = Misfit("cannot schedule extended resource claim")
"""What an earlier attempt made for the pod is still there."""


def list_misfits(
    pod: Obj, node: Obj, others: Sequence[Obj], backed_by_devices: frozenset[str]
) -> list[Misfit]:
    """Return why a pod cannot run on a node; empty if it can.

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
    return _list_lacking_resources(pod, node, others, backed_by_devices)


def prefilter_message(nodes: int, reason: str) -> str:
    """Return the message where no node was looked at, for a reason of the pod itself."""
    return f"0/{nodes} nodes are available: {reason}."


def filter_message(nodes: Mapping[str, Sequence[Misfit]]) -> str:
    """Return the message where each node was looked at: node -> why it does not suit."""
    reasons = [misfit.reason for misfits in nodes.values() for misfit in misfits]
    return f"0/{len(nodes)} nodes are available: {_histogram(reasons)}."


def preemption_message(nodes: Mapping[str, Sequence[Misfit]], total: int) -> str:
    """Return what is said where nothing is to be gained by making room.

    Args:
        nodes: node -> why it does not suit; empty where none was looked at.
        total: how many nodes there are.
    """
    helpful = sum(1 for misfits in nodes.values() if misfits and all(m.resolvable for m in misfits))
    reasons = ["No preemption victims found for incoming pod"] * helpful
    reasons += ["Preemption is not helpful for scheduling"] * (total - helpful)
    return f"preemption: 0/{total} nodes are available: {_histogram(reasons)}."


def _histogram(reasons: Sequence[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def _list_lacking_resources(
    pod: Obj, node: Obj, others: Sequence[Obj], backed_by_devices: frozenset[str]
) -> list[Misfit]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    used = sum(map(sum_requests, others), Counter[str]())
    lacking = []
    if len(others) + 1 > amount_of(allocatable.get("pods", "0")):
        lacking.append(Misfit("Too many pods", resolvable=True))
    for name, amount in sum_requests(pod).items():
        free = amount_of(allocatable.get(name, "0")) - used[name]
        from_devices = name in backed_by_devices and not amount_of(allocatable.get(name, "0"))
        if amount > free and not from_devices:
            exceeds_node = amount > amount_of(allocatable.get(name, "0"))
            lacking.append(Misfit(f"Insufficient {name}", resolvable=not exceeds_node))
    return lacking


def sum_requests(pod: Obj) -> Counter[str]:
    """Return what a pod takes of its node, in units of 1e-9.

    That is what its containers ask for, and what its devices take of the node's own resources,
    once that is in its status.
    """
    claim_statuses = (pod.get("status") or {}).get("nodeAllocatableResourceClaimStatuses") or []
    of_devices = {name: quantity.nanos for name, quantity in sum_demand(claim_statuses).items()}
    return pods.sum_requests(pod) + Counter(of_devices)


def amount_of(quantity: str) -> int:
    """Return a quantity in units of 1e-9."""
    return parse_quantity(quantity).nanos


@dataclass(frozen=True, slots=True)
class NodeAllocatable:
    """The devices of a cluster, as far as they stand for, or cost, what their node has anyway."""

    slices: Sequence[api.ResourceSlice]

    def check_sharing(self, claims: Iterable[tuple[Obj, bool]], node: Obj) -> list[Misfit]:
        """Return why an allocated claim cannot be used by one more pod; empty if it can.

        Args:
            claims: the pod's allocated claims, and whether others have reserved it and the pod
                itself has not.
            node: where the pod is to run.
        """
        api_node = api.Node.from_dict(node)
        for claim, used_by_others in claims:
            if used_by_others and allocatable.is_exclusive(
                claim["status"]["allocation"], self.slices, api_node
            ):
                text = (
                    f"node allocatable resource claim {name_of(claim)} has a mapped device and "
                    "cannot be shared across pods"
                )
                return [Misfit(text)]
        return []

    def check_claims(
        self, pod: Obj, claims: Sequence[PodClaim], node: Obj, others: Iterable[Obj]
    ) -> tuple[list[Obj], list[Misfit]]:
        """Return what the claims come to on a node, and why the node has too little, if it has.

        Args:
            claims: all its claims, with the allocations that they have or are to get.
            node: where it is to run.

        Returns ``status.nodeAllocatableResourceClaimStatuses`` for the pod, and the misfits.

        Raises:
            AllocatableError: a device is gone, or has not consumed what its mapping names.
            InputError: an object has not its form.
        """
        statuses = allocatable.claim_statuses(pod, claims, self.slices, api.Node.from_dict(node))
        if not statuses:
            return [], []
        node_resources = {
            name: parse_quantity(str(amount))
            for name, amount in ((node.get("status") or {}).get("allocatable") or {}).items()
        }
        pod_requests = _quantities(pods.sum_requests(pod))
        device_demand = allocatable.sum_demand(statuses)
        used = sum(map(sum_requests, others), Counter[str]())
        reasons = allocatable.list_insufficient_resources(
            pod_requests, device_demand, node_resources, _quantities(used)
        )
        exceeds_node = bool(
            allocatable.list_insufficient_resources(pod_requests, device_demand, node_resources, {})
        )
        return statuses, [Misfit(reason, resolvable=not exceeds_node) for reason in reasons]


def _quantities(nanos: Mapping[str, int]) -> dict[str, Quantity]:
    return {name: Quantity.from_nanos(amount) for name, amount in nanos.items()}
