"""Defects in how many devices a claim gets: counts, modes, limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kube.values import Obj
from kubesim.scheduling.binding import Plan
from kubesim.scheduling.filtering import Filter, SchedulingError
from kubesim.scheduling.nodefit import Misfit
from kubesim.world import World
from tests.mutants.allocator.inputs import (
    Answer,
    changed,
    devices,
    reads_claims,
    requests,
    results,
    wanted,
)
from tests.mutants.replacing import Defects, Mutation, instead, replace


def one_device(claim: Obj) -> None:
    for item in wanted(claim):
        if item.get("allocationMode") != "All":
            item["count"] = 1


@instead(Filter.allocate)
def count_is_a_maximum(
    world: World, original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
) -> Answer:
    """Where a node has fewer devices than a request asks for, the request gets these."""
    found = [
        len(devices(item))
        for item in world.cluster.list_slices()
        if item["spec"].get("nodeName") in {None, node["metadata"]["name"]}
    ]

    def limit(claim: Obj) -> None:
        for item in wanted(claim):
            item["count"] = min(item.get("count", 1), max(sum(found), 1))

    return original(allocator, node, changed(claims, limit))


def one_of_all(claim: Obj) -> None:
    for item in wanted(claim):
        if item.get("allocationMode") == "All":
            item.update(allocationMode="ExactCount", count=1)


def all_that_is_free(world: World) -> None:
    """While a request for all devices waits, devices in use are as if they were not there."""
    store = world.cluster.store

    def change(resource_slice: Obj) -> None:
        spec = resource_slice["spec"]
        used = {
            (result["driver"], result["pool"], result["device"])
            for claim in store.all("ResourceClaim")
            for result in results(claim["status"].get("allocation") or {})
        }
        pool = spec["driver"], spec["pool"]["name"]
        spec["devices"] = [
            device for device in devices(resource_slice) if (*pool, device["name"]) not in used
        ]

    def resource_slices(original: Callable[[], list[Obj]]) -> list[Obj]:
        waiting = any(
            item.get("allocationMode") == "All"
            for claim in store.all("ResourceClaim")
            if "allocation" not in claim["status"]
            for item in wanted(claim)
        )
        return changed(original(), change) if waiting else original()

    replace(world.scheduler.filter.listers.resource_slices, resource_slices)


def all_but_tainted(world: World) -> None:
    """While a request for all devices waits, tainted devices are as if they were not there."""
    store = world.cluster.store

    def change(resource_slice: Obj) -> None:
        found = devices(resource_slice)
        found[:] = [device for device in found if not device.get("taints")]

    def resource_slices(original: Callable[[], list[Obj]]) -> list[Obj]:
        waiting = any(
            item.get("allocationMode") == "All" and not item.get("tolerations")
            for claim in store.all("ResourceClaim")
            if "allocation" not in claim["status"]
            for item in wanted(claim)
        )
        return changed(original(), change) if waiting else original()

    replace(world.scheduler.filter.listers.resource_slices, resource_slices)


def admin_all_as_others(claim: Obj) -> None:
    for item in wanted(claim):
        if item.get("allocationMode") == "All":
            item.pop("adminAccess", None)


def without_all(claim: Obj) -> None:
    kept = [
        request
        for request in requests(claim)
        if (request.get("exactly") or {}).get("allocationMode") != "All"
    ]
    claim["spec"]["devices"]["requests"] = kept


def all_may_be_none(*, unless_in_use: bool) -> Mutation:
    """Requests for all devices are left out where they cannot be satisfied."""

    @instead(Filter.allocate)
    def mutate(
        world: World,
        original: Callable[..., Answer],
        allocator: Any,
        node: Obj,
        claims: Sequence[Obj],
    ) -> Answer:
        try:
            found = original(allocator, node, claims)
        except SchedulingError:
            found = (), [Misfit("")]
        everything = world.cluster.store.all("ResourceClaim")
        in_use = any("allocation" in claim["status"] for claim in everything)
        if found[0] or (in_use and unless_in_use):
            return original(allocator, node, claims)
        return original(allocator, node, changed(claims, without_all))

    return mutate


def refuses(too_much: Callable[[Obj], bool], world: World) -> None:
    """An allocation that would be right is not made."""

    def allocate(
        original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
    ) -> Answer:
        found = original(allocator, node, claims)
        return ((), [Misfit("too much")]) if any(map(too_much, found[0])) else found

    replace(world.scheduler.filter.allocate, allocate)


def at_most_32(claim: Obj) -> None:
    for item in wanted(claim):
        item["count"] = min(item.get("count", 1), 32)


def two_drivers(world: World) -> None:
    refuses(lambda allocation: len({item["driver"] for item in results(allocation)}) > 1, world)


def one_by_one(world: World) -> None:
    """What can be had for some claims of a pod is taken, though the pod cannot run."""

    kept = set()

    def keep(claim: Obj, allocation: Obj) -> None:
        kept.add(claim["metadata"]["uid"])
        world.cluster.store.modify(claim, lambda new: new["status"].update(allocation=allocation))

    def allocate(
        original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
    ) -> Answer:
        found = original(allocator, node, claims)
        if len(claims) > 1 and not found[0]:
            allocations, _ = original(allocator, node, claims[:1])
            for claim, allocation in zip(claims, allocations, strict=False):
                keep(claim, allocation)
        return found

    def deallocate(original: Callable[..., None], pod: Obj, plan: Plan) -> None:
        if kept.isdisjoint(claim["metadata"]["uid"] for claim in plan.unavailable):
            original(pod, plan)

    replace(world.scheduler.filter.allocate, allocate)
    replace(world.scheduler.binder.deallocate, deallocate)


DEFECTS: Defects = {
    "allocates-claims-one-by-one": one_by_one,
    "all-may-be-none": all_may_be_none(unless_in_use=False),
    "all-takes-what-is-free": all_that_is_free,
    "admin-access-to-all-needs-free-devices": reads_claims(admin_all_as_others),
    "all-skips-tainted-devices": all_but_tainted,
    "all-takes-one": reads_claims(one_of_all),
    "cuts-requests-to-32-devices": reads_claims(at_most_32),
    "count-is-a-maximum": count_is_a_maximum,
    "ignores-count": reads_claims(one_device),
    "refuses-two-drivers": two_drivers,
}
