"""Defects in what makes a pool of ResourceSlices, and in where its devices can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from tests.mutants.allocation.inputs import (
    changed,
    devices,
    pool_of,
    reads,
    reads_all,
    refuses,
    results,
    takes_all,
    without_device_field,
    writes,
)
from tests.mutants.allocation.views import View, answers, sees
from tests.mutants.replacing import Defects, Mutation, replace


def without_slices(field: str) -> Mutation:
    """Slices with a field are not looked at."""

    def change(slices: list[Obj]) -> list[Obj]:
        return [item for item in slices if not item["spec"].get(field)]

    return reads_all(Listers.resource_slices, change)


def first_of_pool(slices: list[Obj]) -> list[Obj]:
    """Of a complete pool with several slices of devices, only the first."""
    first: dict[tuple[str, str], Obj] = {}
    for item in slices:
        if devices(item):
            first.setdefault(pool_of(item), item)
    pools = [pool_of(item) for item in slices]
    kept = [
        item
        for item in slices
        if first.get(pool_of(item), item) is item
        or not devices(item)
        or pools.count(pool_of(item)) < item["spec"]["pool"]["resourceSliceCount"]
    ]
    return complete(kept) if len(kept) < len(slices) else slices


def complete(slices: list[Obj]) -> list[Obj]:
    """As many slices as a pool has of a generation are all of it."""
    states = [(pool_of(item), item["spec"]["pool"]["generation"]) for item in slices]

    def change(resource_slice: Obj) -> None:
        pool = resource_slice["spec"]["pool"]
        present = states.count((pool_of(resource_slice), pool["generation"]))
        pool["resourceSliceCount"] = min(present, pool["resourceSliceCount"])

    return changed(slices, change)


def all_generations(slices: list[Obj]) -> list[Obj]:
    """A pool is all slices that were ever published of it, if there are several generations."""

    def change(resource_slice: Obj) -> None:
        pools = [
            item["spec"]["pool"] for item in slices if pool_of(item) == pool_of(resource_slice)
        ]
        if len({pool["generation"] for pool in pools}) > 1:
            resource_slice["spec"]["pool"].update(generation=1, resourceSliceCount=len(pools))

    return changed(slices, change)


def without_duplicates(slices: list[Obj]) -> list[Obj]:
    """Of devices of one name in a pool, the first is taken."""
    seen: set[tuple[str, str, int, str]] = set()

    def change(resource_slice: Obj) -> None:
        spec = resource_slice["spec"]
        kept = []
        for device in devices(resource_slice):
            key = (*pool_of(resource_slice), spec["pool"]["generation"], device["name"])
            if key not in seen:
                seen.add(key)
                kept.append(device)
        if devices(resource_slice):
            spec["devices"] = kept

    return changed(slices, change)


def nothing_beside_duplicates(slices: list[Obj]) -> list[Obj]:
    """While a pool has a device of one name twice, no slice of any pool is used."""
    kept = without_duplicates(slices)
    same = [devices(item) for item in kept] == [devices(item) for item in slices]
    return slices if same else []


def no_pools_over_nodes(slices: list[Obj]) -> list[Obj]:
    """Slices of a pool for other nodes count as missing."""

    def change(resource_slice: Obj) -> None:
        nodes = {
            item["spec"].get("nodeName")
            for item in slices
            if pool_of(item) == pool_of(resource_slice)
        }
        if len(nodes) > 1:
            resource_slice["spec"]["pool"]["resourceSliceCount"] += 1

    return changed(slices, change)


def by_name_alone(world: World) -> None:
    """A device that is in use makes those of its name in other pools count as used."""
    store = world.cluster.store

    def change(claim: Obj) -> None:
        found = results(claim["status"].get("allocation") or {})
        for item in store.all("ResourceSlice"):
            names = {device["name"] for device in devices(item)}
            for result in list(found):
                same = result["device"] in names and result["driver"] == pool_of(item)[0]
                if same and result["pool"] != pool_of(item)[1]:
                    found.append({**result, "pool": pool_of(item)[1]})

    reads(Listers.resource_claims, change)(world)


Place = tuple[str, str]


def generation(item: Obj) -> int:
    number: int = item["spec"]["pool"]["generation"]
    return number


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


def invalid_for_ever(world: World) -> None:
    """Whether a generation of a pool can be used by a count is found out once."""
    invalid: set[tuple[tuple[str, str], int]] = set()

    def change(view: View) -> None:
        pools: dict[tuple[tuple[str, str], int], list[Obj]] = {}
        for item in view.slices:
            pools.setdefault((pool_of(item), generation(item)), []).append(item)
        invalid.update(key for key, pool in pools.items() if has_duplicates(pool))
        if not any(map(takes_all, view.wanted)):
            kept = [pool for key, pool in pools.items() if key not in invalid]
            view.slices = [item for pool in kept for item in pool]

    sees(change)(world)


def one_node(resource_slice: Obj) -> None:
    """A slice is for one node, so devices that name another one than the first are left out."""
    found = devices(resource_slice)
    nodes = {device.get("nodeName") for device in found[:1]}
    found[:] = [device for device in found if device.get("nodeName") in nodes]


def any_node(resource_slice: Obj) -> None:
    if resource_slice["spec"].pop("nodeName", None):
        resource_slice["spec"]["allNodes"] = True


def double_allocation(world: World) -> None:
    replace(world.scheduler.filter.listers.resource_claims, lambda _: [])


def lose_node_selector(allocation: Obj) -> None:
    allocation.pop("nodeSelector", None)


def _first_slice_decides(slices: list[Obj]) -> list[Obj]:
    """A pool whose first slice is of an older generation than others is not used at all."""
    first: dict[tuple[str, str], int] = {}
    newest: dict[tuple[str, str], int] = {}
    for item in slices:
        pool, number = pool_of(item), generation(item)
        first.setdefault(pool, number)
        newest[pool] = max(number, newest.get(pool, 0))
    return [item for item in slices if first[pool_of(item)] == newest[pool_of(item)]]


def _not_in_needs_the_label(slices: list[Obj]) -> list[Obj]:
    def change(item: Obj) -> None:
        for term in selectors([item]):
            for rule in [*(term.get("matchExpressions") or [])]:
                if rule["operator"] == "NotIn":
                    term["matchExpressions"].append({"key": rule["key"], "operator": "Exists"})

    return changed(slices, change)


DEFECTS: Defects = {
    "ignores-network-devices": without_slices("allNodes"),
    "names-devices-without-pool": by_name_alone,
    "no-pools-over-several-nodes": reads_all(Listers.resource_slices, no_pools_over_nodes),
    "only-first-slice": reads_all(Listers.resource_slices, first_of_pool),
    "invalid-pools-stop-all": reads_all(Listers.resource_slices, nothing_beside_duplicates),
    "uses-incomplete-pools": reads_all(Listers.resource_slices, complete),
    "uses-pools-with-duplicates": reads_all(Listers.resource_slices, without_duplicates),
    "uses-old-generations": reads_all(Listers.resource_slices, all_generations),
    "all-ignores-incomplete-pools": without(is_incomplete),
    "all-ignores-invalid-pools": without(has_duplicates),
    "count-stays-within-a-pool": spans(lambda _, result: (result["driver"], result["pool"])),
    "ignores-binds-to-node": reads(Listers.resource_slices, without_device_field("bindsToNode")),
    "keeps-one-node-requirement": answers(one_requirement),
    "names-devices-without-driver": without_driver,
    "network-allocations-name-one-node": answers(on_one_node),
    "network-devices-free-from-nodes": answers(everywhere_with_a_network_device),
    "newer-generations-elsewhere-are-not-seen": sees(newest_of_node),
    "slices-without-devices-do-not-count": reads_all(Listers.resource_slices, full_slices_only),
    "takes-last-device-first": reads(Listers.resource_slices, backwards),
    "invalid-pools-stay-invalid": invalid_for_ever,
    "one-node-per-slice": reads(Listers.resource_slices, one_node),
    "any-node": reads(Listers.resource_slices, any_node),
    "double-allocation": double_allocation,
    "no-node-selector": writes(lose_node_selector),
    "pools-that-begin-with-an-old-slice-are-not-used": reads_all(
        Listers.resource_slices, _first_slice_decides
    ),
    "not-in-needs-the-label": reads_all(Listers.resource_slices, _not_in_needs_the_label),
}
