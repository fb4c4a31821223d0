"""Defects in what partitions and shares take: counters of pools, capacity, the nodes of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api.quantity import parse_quantity
from tests.mutants.allocator.inputs import (
    devices,
    reads,
    reads_all,
    reads_claims,
    refuses_all,
    requests,
    results,
    wanted,
)
from tests.mutants.allocator.pools import pool_of
from tests.mutants.allocator.scheduler_memory import place
from tests.mutants.allocator.search import first_request, keeps_first_choice
from tests.mutants.allocator.selectors import no_distinct_attribute
from tests.mutants.allocator.undone_choices import counter_sets
from tests.mutants.replacing import Defects, Mutation

Counters = dict[tuple[tuple[str, str], str], dict[str, str]]
"""Pool and counter set -> counter -> amount."""


def counters_of(slices: Sequence[Obj]) -> Counters:
    return {
        (pool_of(item), found["name"]): {k: v["value"] for k, v in found["counters"].items()}
        for item in slices
        for found in item["spec"].get("sharedCounters") or []
    }


def consumption(change: Callable[[dict[str, str], Obj], None]) -> Mutation:
    """What devices consume of a counter set means something else."""

    def read(slices: list[Obj]) -> list[Obj]:
        there = counters_of(slices)
        for item in slices:
            for device in devices(item):
                for consumed in device.get("consumesCounters") or []:
                    change(there.get((pool_of(item), consumed["counterSet"]), {}), consumed)
        return slices

    return reads_all(Listers.resource_slices, lambda slices: read([*map(clone, slices)]))


def known_only(there: dict[str, str], consumed: Obj) -> None:
    consumed["counters"] = {k: v for k, v in consumed["counters"].items() if k in there}


def at_most_all(there: dict[str, str], consumed: Obj) -> None:
    for name, amount in consumed["counters"].items():
        if name in there:
            least = min((there[name], amount["value"]), key=lambda text: parse_quantity(text).nanos)
            amount["value"] = least


def counters_of_two_pools(world: World, pairs: list[tuple[Obj, Obj]]) -> bool:
    """Devices of two pools that consume from counter sets of one name do not go together."""
    sets = [
        name
        for pool in {(r["driver"], r["pool"]) for _, found in pairs for r in results(found)}
        for name in counter_sets(
            device
            for item in world.cluster.list_slices()
            for device in devices(item)
            if pool_of(item) == pool
        )
    ]
    return len(sets) > len({*sets})


def each_share_pays(world: World) -> None:
    """A device that consumes counters and has a share given is not shared any further."""

    def change(resource_slice: Obj) -> None:
        taken = {
            (result["driver"], result["pool"], result["device"])
            for claim in world.cluster.store.all("ResourceClaim")
            for result in results(claim["status"].get("allocation") or {})
        }
        for device in devices(resource_slice):
            if counter_sets([device]) and (*pool_of(resource_slice), device["name"]) in taken:
                device["allowMultipleAllocations"] = False

    reads(Listers.resource_slices, change)(world)


def one_device_pays(world: World) -> None:
    """Of the devices that a claim has got, only the first consumes counters."""

    def change(resource_slice: Obj) -> None:
        free = {
            place(result)
            for claim in world.cluster.store.all("ResourceClaim")
            for result in results(claim["status"].get("allocation") or {})[1:]
        }
        for device in devices(resource_slice):
            if (*pool_of(resource_slice), device["name"]) in free:
                device.pop("consumesCounters", None)

    reads(Listers.resource_slices, change)(world)


def first_choice_with_counters(world: World) -> None:
    def first(claims: Sequence[Obj]) -> list[Obj]:
        return first_request(claims) if counters_of(world.cluster.list_slices()) else []

    keeps_first_choice(first)(world)


def any_node_of_selectors(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        if device.pop("nodeSelector", None):
            device["allNodes"] = True


def where_they_were(world: World) -> None:
    """Devices that name their nodes one by one stay where they were first."""
    first: dict[tuple[str, str, str], str] = {}

    def change(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            if name := device.get("nodeName"):
                key = (*pool_of(resource_slice), device["name"])
                device["nodeName"] = first.setdefault(key, name)

    reads(Listers.resource_slices, change)(world)


def alternatives_for_nothing(claim: Obj) -> None:
    for request in requests(claim):
        for item in request.get("firstAvailable") or []:
            item.pop("capacity", None)


def distinct_spares_shares(claim: Obj) -> None:
    if any(item.get("capacity") for item in wanted(claim)):
        no_distinct_attribute(claim)


def distinct_spares_alternatives(claim: Obj) -> None:
    if any(request.get("firstAvailable") for request in requests(claim)):
        no_distinct_attribute(claim)


DEFECTS: Defects = {
    "alternatives-lose-capacity": reads_claims(alternatives_for_nothing),
    "claims-consume-counters-of-one-device": one_device_pays,
    "counters-are-cut-to-what-there-is": consumption(at_most_all),
    "devices-stay-on-their-first-node": where_they_were,
    "distinct-spares-alternatives": reads_claims(distinct_spares_alternatives),
    "distinct-spares-shares": reads_claims(distinct_spares_shares),
    "each-share-consumes-counters": each_share_pays,
    "ignores-node-selectors-per-device": reads(Listers.resource_slices, any_node_of_selectors),
    "ignores-unknown-counters": consumption(known_only),
    "keeps-first-choice-with-counters": first_choice_with_counters,
    "mixes-up-counters-of-pools": refuses_all(counters_of_two_pools),
}
