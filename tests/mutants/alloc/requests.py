"""Defects in how many devices a claim gets, and which requests go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kube.values import Obj
from kubesim import pods
from kubesim.scheduling.binding import Plan
from kubesim.scheduling.filtering import Filter
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from tests.mutants.alloc.views import Alone, allows, by_request
from tests.mutants.allocator.alignment import takes_all
from tests.mutants.allocator.alternatives import only_first
from tests.mutants.allocator.inputs import (
    changed,
    reads_claims,
    refuses,
    refuses_all,
    requests,
    results,
    wanted,
)
from tests.mutants.allocator.scheduler_memory import place, used
from tests.mutants.allocator.selectors import constraints_of
from tests.mutants.replacing import Defects, instead

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
}
