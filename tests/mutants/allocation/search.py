"""Defects of the search: what is tried after the first choice, and what that leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from kube.values import Obj
from kubesim.scheduling.filtering import Filter, SchedulingError
from kubesim.scheduling.nodefit import Misfit
from kubesim.world import World
from tests.mutants.allocation.inputs import (
    Allocate,
    Answer,
    Claims,
    changed,
    constraints_of,
    consumptions,
    devices,
    place,
    pool_of,
    refuses,
    requests,
    results,
    wanted,
)
from tests.mutants.replacing import Defects, Mutation, instead


def keeps_first_choice(first: Callable[[Sequence[Obj]], list[Obj]]) -> Mutation:
    """What the first part of a pod's claims would get alone is all that is tried for it."""

    @instead(Filter.allocate)
    def mutate(_: World, original: Allocate, allocator: Any, node: Obj, claims: Claims) -> Answer:
        found = original(allocator, node, claims)
        alone = first(claims)
        if not found[0] or not alone:
            return found
        greedy = original(allocator, node, alone)
        chosen = [_device(item) for item in results(greedy[0][0])] if greedy[0] else []
        taken = [_device(item) for item in results(found[0][0])]
        return found if set(chosen) <= set(taken) else ((), [Misfit("no second choice")])

    return mutate


def _device(result: Obj) -> tuple[str, str, str, str]:
    return result["request"], result["driver"], result["pool"], result["device"]


def first_claim(claims: Sequence[Obj]) -> list[Obj]:
    return list(claims[:1]) if len(claims) > 1 else []


def first_request(claims: Sequence[Obj]) -> list[Obj]:
    """A claim with several requests and nothing that ties them together, cut to the first."""
    if len(claims) != 1 or len(requests(claims[0])) < 2 or constraints_of(claims[0]):
        return []

    def cut(claim: Obj) -> None:
        del requests(claim)[1:]

    return changed(claims, cut)


@instead(Filter.allocate)
def all_of_what_is_left(
    _: World, original: Allocate, allocator: Any, node: Obj, claims: Claims
) -> Answer:
    """A pod's claim for all devices gets those that its other claims leave."""
    found = original(allocator, node, claims)
    for count in range(8, 0, -1) if len(claims) > 1 and not found[0] else ():
        again = original(allocator, node, changed(claims, exactly(count)))
        if again[0]:
            return again
    return found


def exactly(count: int) -> Callable[[Obj], None]:
    """In place of all devices so many."""

    def change(claim: Obj) -> None:
        for item in wanted(claim):
            if item.get("allocationMode") == "All":
                item |= {"allocationMode": "ExactCount", "count": count}

    return change


@instead(Filter.allocate)
def errors_are_no_match(
    _: World, original: Allocate, allocator: Any, node: Obj, claims: Claims
) -> Answer:
    try:
        return original(allocator, node, claims)
    except SchedulingError:
        return (), [Misfit("cannot allocate all claims")]


Refuses = Callable[[Obj, list[Obj], list[Obj]], bool]
"""Of a claim, the devices that were chosen for it, and those that come before the last of them."""


def finds_nothing_where(wrong: Refuses) -> Mutation:
    """The search fails for these claims, though there is an allocation."""
    return refuses(
        lambda world, claim, allocation: wrong(claim, *chosen_and_passed_over(world, allocation))
    )


def chosen_and_passed_over(world: World, allocation: Obj) -> tuple[list[Obj], list[Obj]]:
    taken = {(item["driver"], item["pool"], item["device"]) for item in results(allocation)}
    pools = {place[:2] for place in taken}
    chosen: list[Obj] = []
    passed: list[Obj] = []
    since_the_last: list[Obj] = []
    for item in world.cluster.list_slices():
        for device in devices(item) if pool_of(item) in pools else ():
            if (*pool_of(item), device["name"]) in taken:
                chosen.append(device)
                passed += since_the_last
                since_the_last = []
            else:
                since_the_last.append(device)
    return chosen, passed


def keeps_counters(claim: Obj, chosen: list[Obj], passed: list[Obj]) -> bool:
    return bool(constraints_of(claim)) and not counter_sets(chosen).isdisjoint(counter_sets(passed))


def counter_sets(found: Iterable[Obj]) -> set[str]:
    return {item["counterSet"] for device in found for item in device.get("consumesCounters") or []}


def keeps_lists_narrowed(claim: Obj, _chosen: list[Obj], passed: list[Obj]) -> bool:
    values = [value for device in passed for value in (device.get("attributes") or {}).values()]
    in_lists = any(isinstance(item, list) for value in values for item in value.values())
    return in_lists and any("matchAttribute" in item for item in constraints_of(claim))


def all_with_counters(claim: Obj, chosen: list[Obj], _passed: list[Obj]) -> bool:
    takes_all = any(item.get("allocationMode") == "All" for item in wanted(claim))
    return takes_all and bool(counter_sets(chosen))


def cut(number: int, claim: Obj) -> None:
    """Only the first requests, and what constraints say of them."""
    kept = requests(claim)[:number]
    names = [request["name"] for request in kept]
    found = constraints_of(claim)
    for constraint in found:
        listed = constraint.get("requests") or names
        constraint["requests"] = [name for name in listed if name in names]
    found[:] = [constraint for constraint in found if constraint["requests"]]
    claim["spec"]["devices"]["requests"] = kept


def all_but_two(claims: Sequence[Obj]) -> list[Obj]:
    """A claim with three requests or more, without the last two."""
    if len(claims) != 1 or len(requests(claims[0])) < 3:
        return []
    return changed(claims, partial(cut, len(requests(claims[0])) - 2))


def later_for_want_of_counters(world: World, claim: Obj, allocation: Obj) -> bool:
    """A partition was taken for an alternative that is not the first."""
    first = {
        f"{request['name']}/{request['firstAvailable'][0]['name']}"
        for request in requests(claim)
        if request.get("firstAvailable")
    }
    partitions = {
        (*pool_of(item), device["name"])
        for item, device, _ in consumptions(world.cluster.list_slices())
    }
    return any(
        "/" in result["request"] and result["request"] not in first and place(result) in partitions
        for result in results(allocation)
    )


DEFECTS: Defects = {
    "all-leaves-out-devices-of-other-claims": all_of_what_is_left,
    "cel-errors-are-no-match": errors_are_no_match,
    "keeps-first-choice-of-claims": keeps_first_choice(first_claim),
    "keeps-counters-of-refused-devices": finds_nothing_where(keeps_counters),
    "keeps-lists-narrowed": finds_nothing_where(keeps_lists_narrowed),
    "never-takes-all-with-counters": finds_nothing_where(all_with_counters),
    "counters-end-the-search-for-alternatives": refuses(later_for_want_of_counters),
    "only-the-request-before-is-undone": keeps_first_choice(all_but_two),
}
