"""Defects in what the scheduler makes of ResourceSlices: pools, generations, nodes."""

from __future__ import annotations

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from tests.mutants.allocator.inputs import changed, devices, reads, reads_all, results
from tests.mutants.replacing import Defects, Mutation


def without_slices(field: str) -> Mutation:
    """Slices with a field are not looked at."""

    def change(slices: list[Obj]) -> list[Obj]:
        return [item for item in slices if not item["spec"].get(field)]

    return reads_all(Listers.resource_slices, change)


def pool_of(resource_slice: Obj) -> tuple[str, str]:
    spec = resource_slice["spec"]
    return spec["driver"], spec["pool"]["name"]


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


DEFECTS: Defects = {
    "ignores-network-devices": without_slices("allNodes"),
    "names-devices-without-pool": by_name_alone,
    "no-pools-over-several-nodes": reads_all(Listers.resource_slices, no_pools_over_nodes),
    "only-first-slice": reads_all(Listers.resource_slices, first_of_pool),
    "invalid-pools-stop-all": reads_all(Listers.resource_slices, nothing_beside_duplicates),
    "uses-incomplete-pools": reads_all(Listers.resource_slices, complete),
    "uses-pools-with-duplicates": reads_all(Listers.resource_slices, without_duplicates),
    "uses-old-generations": reads_all(Listers.resource_slices, all_generations),
}
