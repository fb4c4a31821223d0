"""Defects in what makes a pool, and in where its devices can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from tests.mutants.alloc.views import View, answers, sees
from tests.mutants.allocator.inputs import (
    changed,
    devices,
    reads,
    reads_all,
    refuses,
    results,
    without_device_field,
)
from tests.mutants.allocator.pools import pool_of
from tests.mutants.replacing import Defects, Mutation

Place = tuple[str, str]


def generation(item: Obj) -> int:
    number: int = item["spec"]["pool"]["generation"]
    return number


def generations_as_text(slices: list[Obj]) -> list[Obj]:
    def change(item: Obj) -> None:
        found = {generation(other) for other in slices if pool_of(other) == pool_of(item)}
        item["spec"]["pool"]["generation"] = sorted(found, key=str).index(generation(item)) + 1

    return changed(slices, change)


def newest_of_node(view: View) -> None:
    """The newest generation of a pool is that of the slices which concern the node."""
    name = view.node["metadata"]["name"]
    newest: dict[Place, int] = {}
    for item in view.slices:
        if item["spec"].get("nodeName") in (None, name):
            newest[pool_of(item)] = max(generation(item), newest.get(pool_of(item), 0))
    view.slices = [x for x in view.slices if generation(x) <= newest.get(pool_of(x), generation(x))]


def without(wrong: Callable[[list[Obj]], bool]) -> Mutation:
    """Pools with a fault are not there at all, so that nobody waits for them."""

    def change(slices: list[Obj]) -> list[Obj]:
        newest: dict[Place, list[Obj]] = {}
        for item in sorted(slices, key=generation):
            same = newest.get(pool_of(item), [])
            kept = same if same and generation(same[0]) == generation(item) else []
            newest[pool_of(item)] = [*kept, item]
        return [item for pool in newest.values() if not wrong(pool) for item in pool]

    return reads_all(Listers.resource_slices, change)


def is_incomplete(pool: list[Obj]) -> bool:
    return bool(len(pool) != pool[0]["spec"]["pool"]["resourceSliceCount"])


def has_duplicates(pool: list[Obj]) -> bool:
    names = [device["name"] for item in pool for device in devices(item)]
    return len(names) > len({*names})


def full_slices_only(slices: list[Obj]) -> list[Obj]:
    return [x for x in slices if devices(x) or x["spec"].get("sharedCounters")]


def selectors(slices: Iterable[Obj]) -> Iterable[Obj]:
    for item in slices:
        for source in (item["spec"], *devices(item)):
            if source.get("nodeSelector"):
                yield source["nodeSelector"]["nodeSelectorTerms"][0]


def on_one_node(_world: World, node: Obj, _claim: Obj, allocation: Obj) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": [node["metadata"]["name"]]}
    if results(allocation):
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}


def one_requirement(_world: World, _node: Obj, _claim: Obj, allocation: Obj) -> None:
    for term in (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []:
        term["matchExpressions"] = (term.get("matchExpressions") or [])[:1]


def everywhere_with_a_network_device(world: World, _n: Obj, _claim: Obj, allocation: Obj) -> None:
    everywhere = {
        pool_of(item) for item in world.cluster.list_slices() if item["spec"].get("allNodes")
    }
    if any((result["driver"], result["pool"]) in everywhere for result in results(allocation)):
        allocation.pop("nodeSelector", None)


def without_driver(world: World) -> None:
    """A device in use makes those of its name in the same pool of other drivers count as used."""

    def change(claim: Obj) -> None:
        found = results(claim["status"].get("allocation") or {})
        drivers = {item["spec"]["driver"] for item in world.cluster.list_slices()}
        found += [
            {**result, "driver": driver}
            for result in list(found)
            for driver in sorted(drivers - {result["driver"]})
        ]

    reads(Listers.resource_claims, change)(world)


def spans(key: Callable[[World, Obj], object]) -> Mutation:
    """The devices of a request all come from one place, or it gets none."""

    def wrong(world: World, _claim: Obj, allocation: Obj) -> bool:
        found = [(result["request"], key(world, result)) for result in results(allocation)]
        return any(a[0] == b[0] and a[1] != b[1] for a, b in pairwise(sorted(found, key=str)))

    return refuses(wrong)


def backwards(item: Obj) -> None:
    devices(item).reverse()


DEFECTS: Defects = {
    "all-ignores-incomplete-pools": without(is_incomplete),
    "all-ignores-invalid-pools": without(has_duplicates),
    "compares-generations-as-text": reads_all(Listers.resource_slices, generations_as_text),
    "count-stays-within-a-pool": spans(lambda _, result: (result["driver"], result["pool"])),
    "ignores-binds-to-node": reads(Listers.resource_slices, without_device_field("bindsToNode")),
    "keeps-one-node-requirement": answers(one_requirement),
    "names-devices-without-driver": without_driver,
    "network-allocations-name-one-node": answers(on_one_node),
    "network-devices-free-from-nodes": answers(everywhere_with_a_network_device),
    "newer-generations-elsewhere-are-not-seen": sees(newest_of_node),
    "slices-without-devices-do-not-count": reads_all(Listers.resource_slices, full_slices_only),
    "takes-last-device-first": reads(Listers.resource_slices, backwards),
}
