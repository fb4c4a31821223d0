"""Defects in how many devices a claim gets, and which requests go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.scheduling.binding import Plan
from kubesim.scheduling.filtering import Filter, SchedulingError
from kubesim.scheduling.nodefit import Misfit
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from tests.mutants.allocation.alternatives import only_first
from tests.mutants.allocation.inputs import (
    Allocate,
    Answer,
    Claims,
    changed,
    constraints_of,
    devices,
    place,
    reads_claims,
    refuses,
    refuses_all,
    requests,
    results,
    takes_all,
    used,
    wanted,
    without_request_field,
    writes,
)
from tests.mutants.allocation.views import Alone, allows, by_request
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace

Wrong = Callable[[Alone, Sequence[Obj]], Sequence[Obj]]


def where(applies: Callable[[Obj], bool], other: Wrong) -> Wrong:
    """Something wrong is taken for these claims only."""
    return lambda alone, claims: other(alone, claims) if any(map(applies, claims)) else ()


def too_many(claim: Obj) -> bool:
    return bool(sum(item.get("count", 1) for item in wanted(claim)) > ALLOCATION_RESULTS_MAX)


def all_beside_others(claim: Obj) -> bool:
    return takes_all(claim) and len(requests(claim)) > 1


def is_admin(claim: Obj) -> bool:
    return any(item.get("adminAccess") for item in wanted(claim))


def first_32(alone: Alone, claims: Sequence[Obj]) -> Sequence[Obj]:
    def cut(claim: Obj) -> None:
        for item in wanted(claim):
            if item.get("allocationMode") == "All":
                item.update(allocationMode="ExactCount", count=ALLOCATION_RESULTS_MAX)

    return alone(changed(claims, cut))


def one_by_one(alone: Alone, claims: Sequence[Obj]) -> Sequence[Obj]:
    """No claim of a pod knows of the others."""
    parts = [alone([claim]) for claim in claims] if len(claims) > 1 else []
    return [part[0] for part in parts] if all(parts) else ()


def device_by_device(alone: Alone, claims: Sequence[Obj]) -> Sequence[Obj]:
    """A request for several devices is several requests that know nothing of each other."""
    found = by_request(alone, changed(claims, split))
    for allocation in found:
        for result in results(allocation):
            result["request"] = result["request"].rpartition("--")[0]
    return found


def split(claim: Obj) -> None:
    claim["spec"]["devices"]["requests"] = [
        {**clone(request), "name": f"{request['name']}--{number}", "exactly": one}
        for request in requests(claim)
        if request.get("exactly")
        for one in [{**request["exactly"], "count": 1}]
        for number in range(request["exactly"].get("count", 1))
    ]


def shared_in_pod(_world: World, pairs: list[tuple[Obj, Obj]]) -> bool:
    """A device of one claim of a pod is watched by another."""
    if not any(is_admin(claim) for claim, _ in pairs):
        return False
    found = [{*map(place, results(allocation))} for _, allocation in pairs]
    return sum(map(len, found)) > len(set().union(*found))


def no_selectors_of_admins(claim: Obj) -> None:
    for item in wanted(claim):
        if item.get("adminAccess"):
            item.pop("selectors", None)


def constraints_spare_admins(claim: Obj) -> None:
    if is_admin(claim):
        constraints_of(claim).clear()


def of_different_places(_world: World, claim: Obj, allocation: Obj) -> bool:
    """Alternatives that were taken are not all the first, or all the second, of their requests."""
    chosen = {result["request"] for result in results(allocation)}
    places = {
        number
        for request in requests(claim)
        for number, item in enumerate(request.get("firstAvailable") or [])
        if f"{request['name']}/{item['name']}" in chosen
    }
    return len(places) > 1


@instead(Filter.score)
def score_of_first_claim(_: World, original: Callable[[Plan], int], plan: Plan) -> int:
    first = Plan(plan.claims)
    first.to_allocate, first.allocations = plan.to_allocate[:1], plan.allocations[:1]
    return original(first)


@instead(Filter.score)
def score_of_first_request(_: World, original: Callable[[Plan], int], plan: Plan) -> int:
    first = Plan(plan.claims)
    first.to_allocate, first.allocations = [*map(clone, plan.to_allocate)], plan.allocations
    for claim in first.to_allocate:
        del requests(claim)[1:]
    return original(first)


def others_in_use(world: World, claim: Obj, allocation: Obj) -> bool:
    """All devices that match are free, but some other device of their pools is not."""
    selects = any(takes_all(claim) and item.get("selectors") for item in wanted(claim))
    return selects and shares_pool_with_others(world, allocation)


def shares_pool_with_others(world: World, allocation: Obj) -> bool:
    pools = {place(result)[:2] for result in results(allocation)}
    claims = world.cluster.store.all("ResourceClaim")
    return any(device[:2] in pools for claim in claims for device in used(claim))


def kept_for_who_waits(world: World, claim: Obj, allocation: Obj) -> bool:
    """A pod waits for all devices, some of which are in use: the others are kept for it."""
    if takes_all(claim) or not shares_pool_with_others(world, allocation):
        return False
    waiting = [
        other
        for pod in world.cluster.store.all("Pod")
        if not pod["spec"].get("nodeName") and not pods.is_deleted(pod)
        for _, other in world.cluster.claims_of(pod)
    ]
    return any(other and takes_all(other) and not used(other) for other in waiting)


def is_full(_world: World, _claim: Obj, allocation: Obj) -> bool:
    return len(results(allocation)) == ALLOCATION_RESULTS_MAX


def one_device(claim: Obj) -> None:
    for item in wanted(claim):
        if item.get("allocationMode") != "All":
            item["count"] = 1


@instead(Filter.allocate)
def count_is_a_maximum(
    world: World, original: Allocate, allocator: Any, node: Obj, claims: Claims
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
        world: World, original: Allocate, allocator: Any, node: Obj, claims: Claims
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


def refuses_amounts(too_much: Callable[[Obj], bool], world: World) -> None:
    """An allocation that would be right is not made."""

    def allocate(original: Allocate, allocator: Any, node: Obj, claims: Claims) -> Answer:
        found = original(allocator, node, claims)
        return ((), [Misfit("too much")]) if any(map(too_much, found[0])) else found

    replace(world.scheduler.filter.allocate, allocate)


def at_most_32(claim: Obj) -> None:
    for item in wanted(claim):
        item["count"] = min(item.get("count", 1), 32)


def two_drivers(world: World) -> None:
    refuses_amounts(
        lambda allocation: len({item["driver"] for item in results(allocation)}) > 1, world
    )


def takes_one_by_one(world: World) -> None:
    """What can be had for some claims of a pod is taken, though the pod cannot run."""

    kept = set()

    def keep(claim: Obj, allocation: Obj) -> None:
        kept.add(claim["metadata"]["uid"])
        world.cluster.store.modify(claim, lambda new: new["status"].update(allocation=allocation))

    def allocate(original: Allocate, allocator: Any, node: Obj, claims: Claims) -> Answer:
        found = original(allocator, node, claims)
        if len(claims) > 1 and not found[0]:
            allocations, _ = original(allocator, node, claims[:1])
            for claim, allocation in zip(claims, allocations, strict=False):
                keep(claim, allocation)
        return found

    def deallocate(original: Original, pod: Obj, plan: Plan) -> None:
        if kept.isdisjoint(claim["metadata"]["uid"] for claim in plan.unavailable):
            original(pod, plan)

    replace(world.scheduler.filter.allocate, allocate)
    replace(world.scheduler.binder.deallocate, deallocate)


def first_device_for_all(allocation: Obj) -> None:
    found = results(allocation)
    for result in found[1:]:
        result.update({name: found[0][name] for name in ("driver", "pool", "device")})


def lose_admin_access(allocation: Obj) -> None:
    for result in results(allocation):
        result.pop("adminAccess", None)


DEFECTS: Defects = {
    "admin-access-avoids-claims-of-its-pod": refuses_all(shared_in_pod),
    "admin-access-ignores-selectors": reads_claims(no_selectors_of_admins),
    "admin-access-repeats-devices": allows(where(is_admin, device_by_device)),
    "all-is-cut-to-32-devices": allows(where(takes_all, first_32)),
    "all-takes-devices-of-other-requests": allows(where(all_beside_others, by_request)),
    "all-waits-for-devices-that-do-not-match": refuses(others_in_use),
    "alternatives-go-together": refuses(of_different_places),
    "claims-of-a-pod-get-the-same-device": allows(one_by_one),
    "claims-without-requests-wait": refuses(lambda _world, claim, _found: not requests(claim)),
    "constraints-spare-admin-access": reads_claims(constraints_spare_admins),
    "eighth-alternative-is-not-tried": only_first(7),
    "limit-of-devices-is-for-each-request": allows(where(too_many, by_request)),
    "refuses-32-devices": refuses(is_full),
    "scores-first-claim-only": score_of_first_claim,
    "scores-first-request-only": score_of_first_request,
    "waiting-for-all-keeps-free-devices": refuses(kept_for_who_waits),
    "allocates-claims-one-by-one": takes_one_by_one,
    "all-may-be-none": all_may_be_none(unless_in_use=False),
    "all-takes-what-is-free": all_that_is_free,
    "admin-access-to-all-needs-free-devices": reads_claims(admin_all_as_others),
    "all-skips-tainted-devices": all_but_tainted,
    "all-takes-one": reads_claims(one_of_all),
    "cuts-requests-to-32-devices": reads_claims(at_most_32),
    "count-is-a-maximum": count_is_a_maximum,
    "ignores-count": reads_claims(one_device),
    "refuses-two-drivers": two_drivers,
    "admin-access-needs-free-device": reads_claims(without_request_field("adminAccess")),
    "loses-admin-access": writes(lose_admin_access),
    "one-device-for-all-requests": writes(first_device_for_all),
}
