"""Defects in what belongs together: lists, derived attributes, pools, all devices of a node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from tests.mutants.allocation.inputs import (
    Device,
    constraints_of,
    devices,
    place,
    pool_of,
    reads,
    reads_all,
    reads_claims,
    refuses,
    requests,
    results,
    takes_all,
    used,
    wanted,
)
from tests.mutants.allocation.search import first_request, keeps_first_choice
from tests.mutants.allocation.selectors import no_distinct_attribute
from tests.mutants.replacing import Defects, Mutation


def of_two_slices(world: World, claim: Obj, allocation: Obj) -> bool:
    """Devices of one pool agree in an attribute, but stand in two of its slices."""
    if not any(item.get("matchAttribute") for item in constraints_of(claim)):
        return False
    chosen = {place(result) for result in results(allocation)}
    slices = [
        pool_of(item)
        for item in world.cluster.list_slices()
        if any((*pool_of(item), device["name"]) in chosen for device in devices(item))
    ]
    return len(slices) > len({*slices})


def not_of_first_group(world: World, claim: Obj, allocation: Obj) -> bool:
    """A constraint that is alone is met by a short cut: the first devices that agree and suffice.

    Whether they are in use is seen too late to try the next ones.
    """
    if len(constraints_of(claim)) != 1:
        return False
    name = (constraints_of(claim)[0].get("matchAttribute") or "").rpartition("/")[2]
    chosen = {place(result) for result in results(allocation)}
    pools = {device[:2] for device in chosen}
    groups: defaultdict[str, set[Device]] = defaultdict(set)
    for item in world.cluster.list_slices():
        for device in devices(item) if pool_of(item) in pools else ():
            for key, value in (device.get("attributes") or {}).items():
                if key.rpartition("/")[2] == name:
                    groups[str(value)].add((*pool_of(item), device["name"]))
    enough = [group for group in groups.values() if len(group) >= len(chosen)]
    in_use = {one for other in world.cluster.store.all("ResourceClaim") for one in used(other)}
    return bool(enough) and not chosen <= enough[0] and not in_use.isdisjoint(enough[0])


def places(world: World, driver: str) -> list[tuple[str, str]]:
    """Pool and node of all slices of a driver for one node, in order."""
    found = [
        (item["spec"]["pool"]["name"], item["spec"]["nodeName"])
        for item in world.cluster.list_slices()
        if item["spec"]["driver"] == driver and item["spec"].get("nodeName") and devices(item)
    ]
    return sorted(found)


def not_in_first_pool(world: World, claim: Obj, allocation: Obj) -> bool:
    found = results(allocation)
    if not found or not constraints_of(claim):
        return False
    pools = places(world, found[0]["driver"])
    own = {node for pool, node in pools if pool == found[0]["pool"]}
    here = [pool for pool, node in pools if node in own]
    return bool(here) and here[0] not in {item["pool"] for item in found}


def not_on_first_node(world: World, claim: Obj, allocation: Obj) -> bool:
    found = results(allocation)
    pools = places(world, found[0]["driver"]) if found and takes_all(claim) else []
    nodes = [node for _, node in pools]
    own = {node for pool, node in pools if pool == found[0]["pool"]}
    return bool(own) and nodes[0] not in own


def first_of_alternatives(claims: Sequence[Obj]) -> list[Obj]:
    tried = first_request(claims)
    return tried if tried and requests(tried[0])[0].get("firstAvailable") else []


def constraints_spare_all(claim: Obj) -> None:
    if takes_all(claim):
        constraints_of(claim).clear()


def attributes(slices: Sequence[Obj]) -> list[tuple[str, Obj]]:
    return [
        (name, value)
        for item in slices
        for device in devices(item)
        for name, value in (device.get("attributes") or {}).items()
    ]


def list_names(slices: Sequence[Obj]) -> set[str]:
    found = attributes(slices)
    return {name for name, value in found if any(isinstance(x, list) for x in value.values())}


def lists_need_not_differ(world: World) -> None:
    def change(claim: Obj) -> None:
        if list_names(world.cluster.list_slices()):
            no_distinct_attribute(claim)

    reads_claims(change)(world)


def values_beside_lists_are_unknown(world: World) -> None:
    def change(resource_slice: Obj) -> None:
        lists = list_names(world.cluster.list_slices())
        for device in devices(resource_slice):
            found = device.get("attributes") or {}
            for name in lists & found.keys():
                if not any(isinstance(value, list) for value in found[name].values()):
                    del found[name]

    reads(Listers.resource_slices, change)(world)


def without_derived(is_lost: Callable[[World, Obj], bool]) -> Mutation:
    def mutate(world: World) -> None:
        def change(claim: Obj) -> None:
            for item in wanted(claim):
                kept = [x for x in item.get("derivedAttributes") or [] if not is_lost(world, x)]
                item["derivedAttributes"] = kept

        reads_claims(change)(world)

    return mutate


def is_published(world: World, derived: Obj) -> bool:
    return derived["name"] in {name for name, _ in attributes(world.cluster.list_slices())}


def is_list(_world: World, derived: Obj) -> bool:
    return bool(derived["expression"].startswith("["))


def conditions_first(slices: list[Obj]) -> list[Obj]:
    """While there are devices with binding conditions, the others of their driver are not seen."""
    late = {
        item["spec"]["driver"]
        for item in slices
        if any(device.get("bindingConditions") for device in devices(item))
    }
    return [
        item
        for item in slices
        if item["spec"]["driver"] not in late
        or any(device.get("bindingConditions") for device in devices(item))
    ]


def all_grows(world: World) -> None:
    """What is added to a pool belongs to those who have all of it."""

    def change(claim: Obj) -> None:
        plain = takes_all(claim) and "firstAvailable" not in requests(claim)[0]
        found = results(claim["status"].get("allocation") or {}) if plain else []
        pools = {(item["driver"], item["pool"]) for item in found}
        known = {item["device"] for item in found}
        for item in world.cluster.list_slices() if found else ():
            for device in devices(item) if pool_of(item) in pools else ():
                if device["name"] not in known:
                    found.append({**found[0], "device": device["name"]})

    reads(Listers.resource_claims, change)(world)


DEFECTS: Defects = {
    "all-grows-with-its-pool": all_grows,
    "all-is-tried-on-the-first-node": refuses(not_on_first_node),
    "constraints-are-tried-in-the-first-pool": refuses(not_in_first_pool),
    "constraints-count-devices-in-use": refuses(not_of_first_group),
    "constraints-hold-within-a-slice": refuses(of_two_slices),
    "constraints-spare-all": reads_claims(constraints_spare_all),
    "derived-lists-are-nothing": without_derived(is_list),
    "devices-with-conditions-go-first": reads_all(Listers.resource_slices, conditions_first),
    "keeps-first-alternative": keeps_first_choice(first_of_alternatives),
    "lists-need-not-differ": lists_need_not_differ,
    "published-goes-before-derived": without_derived(is_published),
    "values-beside-lists-are-unknown": values_beside_lists_are_unknown,
}
