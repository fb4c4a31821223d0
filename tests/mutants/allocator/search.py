"""Defects of the search: what is tried after the first choice, and what a failed choice means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kube.values import Obj
from kubesim.scheduling.filtering import Filter, SchedulingError
from kubesim.scheduling.nodefit import Misfit
from kubesim.world import World
from tests.mutants.allocator.inputs import Answer, changed, requests, results, wanted
from tests.mutants.allocator.selectors import constraints_of
from tests.mutants.replacing import Defects, Mutation, instead


def keeps_first_choice(first: Callable[[Sequence[Obj]], list[Obj]]) -> Mutation:
    """What the first part of a pod's claims would get alone is all that is tried for it."""

    @instead(Filter.allocate)
    def mutate(
        _: World, original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
    ) -> Answer:
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
    _: World, original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
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
    _: World, original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
) -> Answer:
    try:
        return original(allocator, node, claims)
    except SchedulingError:
        return (), [Misfit("cannot allocate all claims")]


DEFECTS: Defects = {
    "all-leaves-out-devices-of-other-claims": all_of_what_is_left,
    "cel-errors-are-no-match": errors_are_no_match,
    "keeps-first-choice-of-claims": keeps_first_choice(first_claim),
}
