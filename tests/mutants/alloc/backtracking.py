"""Defects of the search: what is not tried any more once the first choice does not do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kube.values import Obj
from kubesim.world import World
from tests.mutants.alloc.partitions import consumptions
from tests.mutants.allocator.inputs import changed, refuses, requests, results
from tests.mutants.allocator.pools import pool_of
from tests.mutants.allocator.scheduler_memory import place
from tests.mutants.allocator.search import keeps_first_choice
from tests.mutants.allocator.selectors import constraints_of
from tests.mutants.replacing import Defects


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
    "counters-end-the-search-for-alternatives": refuses(later_for_want_of_counters),
    "only-the-request-before-is-undone": keeps_first_choice(all_but_two),
}
