"""What a pod's devices take of their node's own CPU and memory, and whether the node has it.

Follows calculateAndCheckNodeAllocatableResources of the dynamicresources plugin (pkg/scheduler/
framework/plugins/dynamicresources/nodeallocatabledynamicresources.go). The rules themselves are in
``reference_allocator.allocatable``; here they meet the pods and nodes of the store. Gate:
DRANodeAllocatableResources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.targets.reference import pods
from conformance.targets.reference.scheduling import nodefit
from conformance.targets.reference.scheduling.nodefit import Misfit
from conformance.targets.reference.store import name_of
from conformance.targets.seam.values import Obj
from reference_allocator import allocatable, api
from reference_allocator.allocatable import PodClaim
from reference_allocator.api.quantity import Quantity, parse_quantity


@dataclass(frozen=True, slots=True)
class NodeAllocatable:
    """The devices of a cluster, as far as they stand for, or cost, what their node has anyway."""

    slices: Sequence[api.ResourceSlice]

    def shared(self, claims: Iterable[tuple[Obj, bool]], node: Obj) -> list[Misfit]:
        """Why an allocated claim cannot be used by one more pod; empty if it can.

        Args:
            claims: the pod's allocated claims, and whether others have reserved it and the pod
                itself has not.
            node: where the pod is to run.
        """
        here = api.Node.from_dict(node)
        for claim, taken in claims:
            if taken and allocatable.is_exclusive(claim["status"]["allocation"], self.slices, here):
                text = (
                    f"node allocatable resource claim {name_of(claim)} has a mapped device and "
                    "cannot be shared across pods"
                )
                return [Misfit(text)]
        return []

    def fit(
        self, pod: Obj, claims: Sequence[PodClaim], node: Obj, others: Iterable[Obj]
    ) -> tuple[list[Obj], list[Misfit]]:
        """What the claims come to on a node, and why the node has too little; empty if it has not.

        Args:
            claims: all its claims, with the allocations that they have or are to get.
            node: where it is to run.

        Returns:
            ``status.nodeAllocatableResourceClaimStatuses`` for the pod, and the misfits.

        Raises:
            AllocatableError: a device is gone, or has not consumed what its mapping names.
            InputError: an object has not its form.
        """
        statuses = allocatable.claim_statuses(pod, claims, self.slices, api.Node.from_dict(node))
        if not statuses:
            return [], []
        room = {
            name: parse_quantity(str(amount))
            for name, amount in ((node.get("status") or {}).get("allocatable") or {}).items()
        }
        own = _quantities(pods.requests(pod))
        extra = allocatable.demand(statuses)
        used = sum(map(nodefit.requests, others), Counter[str]())
        reasons = allocatable.lacking(own, extra, room, _quantities(used))
        never = bool(allocatable.lacking(own, extra, room, {}))
        return statuses, [Misfit(reason, resolvable=not never) for reason in reasons]


def _quantities(nanos: Mapping[str, int]) -> dict[str, Quantity]:
    return {name: Quantity.from_nanos(amount) for name, amount in nanos.items()}
