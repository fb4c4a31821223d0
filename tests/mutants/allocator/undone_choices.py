"""Defects of the search: what a device leaves behind that was tried and given up.

All of them are bugs that some Kubernetes had; scenarios/known-issues.yaml has the links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kube.values import Obj
from kubesim.world import World
from tests.mutants.allocator.inputs import devices, refuses, results, wanted
from tests.mutants.allocator.pools import pool_of
from tests.mutants.allocator.selectors import constraints_of
from tests.mutants.replacing import Defects, Mutation

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


DEFECTS: Defects = {
    "keeps-counters-of-refused-devices": finds_nothing_where(keeps_counters),
    "keeps-lists-narrowed": finds_nothing_where(keeps_lists_narrowed),
    "never-takes-all-with-counters": finds_nothing_where(all_with_counters),
}
