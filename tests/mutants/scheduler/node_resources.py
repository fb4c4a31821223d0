"""Defects of what devices cost their node (KEP-5517)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kube.values import Obj
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.nodefit import Misfit, NodeAllocatable
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api import ResourceSlice
from reference_allocator.api.quantity import parse_quantity
from tests.mutants.replacing import Defects, Mutation, instead


class SharedNodeAllocatable(NodeAllocatable):
    """Every claim may be used by several pods."""

    def check_sharing(self, _claims: Iterable[tuple[Obj, bool]], _node: Obj) -> list[Misfit]:
        return []


class OwnNodeAllocatable(NodeAllocatable):
    """A pod has a node for itself."""

    def check_claims(
        self, pod: Obj, claims: Any, node: Obj, _others: Any
    ) -> tuple[list[Obj], list[Misfit]]:
        return super().check_claims(pod, claims, node, [])


def counts_node_resources(kind: Callable[..., NodeAllocatable]) -> Mutation:
    """What devices take of a node's own resources is counted in another way."""

    @instead(Filter.read_node_allocatable)
    def mutate(_: World, original: Callable[[], NodeAllocatable | None]) -> NodeAllocatable | None:
        found = original()
        return found and kind(found.slices)

    return mutate


class FirstClaimAlone(NodeAllocatable):
    """Of the claims of a pod one takes something of its node."""

    def check_claims(
        self, pod: Obj, claims: Any, node: Obj, others: Any
    ) -> tuple[list[Obj], list[Misfit]]:
        return super().check_claims(pod, claims[:1], node, others)


def _costs(change: Callable[[Obj], object]) -> Mutation:
    """What devices take of their node is read in another way, in place."""

    @instead(Filter.read_node_allocatable)
    def mutate(world: World, original: Callable[[], NodeAllocatable | None]) -> Any:
        if original() is None:
            return None
        slices = [clone(item) for item in world.cluster.list_slices()]
        for item in slices:
            for device in item["spec"].get("devices") or []:
                for taken in (device.get("nodeAllocatableResources") or {}).values():
                    change(taken)
        return NodeAllocatable([ResourceSlice.from_dict(item) for item in slices])

    return mutate


def _once(taken: Obj) -> None:
    overhead = taken.get("overhead") or {}
    if "perContainer" in overhead:
        amounts = [parse_quantity(overhead.pop("perContainer"))]
        amounts += [parse_quantity(overhead[name]) for name in ("perPod",) if name in overhead]
        overhead["perPod"] = f"{sum(amount.nanos for amount in amounts) // 10**6}m"


DEFECTS: Defects = {
    "forgets-node-resources-of-others": counts_node_resources(OwnNodeAllocatable),
    "shares-node-resources": counts_node_resources(SharedNodeAllocatable),
    "overhead-of-containers-counts-once": _costs(_once),
    "capacity-multipliers-are-ignored": _costs(
        lambda taken: (taken.get("mapping") or {}).pop("capacityMultiplier", None)
    ),
    "first-claim-alone-costs": counts_node_resources(FirstClaimAlone),
}
