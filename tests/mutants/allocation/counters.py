"""Defects in what partitions take: counters of pools, and which partitions go side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api.quantity import parse_quantity
from tests.mutants.allocation.capacity import stays_used
from tests.mutants.allocation.inputs import (
    changed,
    consumptions,
    devices,
    number,
    place,
    pool_of,
    reads,
    reads_all,
    reads_claims,
    refuses,
    refuses_all,
    requests,
    results,
    text,
    wanted,
)
from tests.mutants.allocation.search import counter_sets, first_request, keeps_first_choice
from tests.mutants.allocation.selectors import no_distinct_attribute
from tests.mutants.allocation.views import View, sees
from tests.mutants.replacing import Defects, Mutation


def evicted_is_gone(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        if any(taint["effect"] == "NoExecute" for taint in device.get("taints") or []):
            device.pop("consumesCounters", None)


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


Key = tuple[tuple[str, str], str]
"""Pool and counter set."""


def key(item: Obj, consumed: Obj) -> Key:
    return pool_of(item), consumed["counterSet"]


def first_of_a_name(slices: list[Obj]) -> list[Obj]:
    seen: set[Key] = set()

    def change(item: Obj) -> None:
        kept = []
        for found in item["spec"].get("sharedCounters") or []:
            if (pool_of(item), found["name"]) not in seen:
                kept.append(found)
            seen.add((pool_of(item), found["name"]))
        item["spec"]["sharedCounters"] = kept

    return changed(slices, change)


def without_unknown(is_ignored: Callable[[Key, set[Key]], bool]) -> Mutation:
    """That a counter set is not in the pool of a device is no fault of the pool."""

    def change(slices: list[Obj]) -> list[Obj]:
        known = {*counters_of(slices)}
        copies = changed(slices, lambda _: None)
        for item in copies:
            for device in devices(item):
                device["consumesCounters"] = [
                    consumed
                    for consumed in device.get("consumesCounters") or []
                    if key(item, consumed) in known or not is_ignored(key(item, consumed), known)
                ]
        return copies

    return reads_all(Listers.resource_slices, change)


def in_another_pool(wanted: Key, known: set[Key]) -> bool:
    return any(wanted[0][0] == pool[0] and wanted[1] == name for pool, name in known)


def elsewhere_ignored(view: View) -> None:
    """Slices for other nodes may consume what there is not."""
    known = counters_of(view.slices)
    for item, device, consumed in [*consumptions(view.slices)]:
        there = known.get(key(item, consumed), {})
        elsewhere = item["spec"].get("nodeName") not in (None, view.node["metadata"]["name"])
        if elsewhere and not consumed["counters"].keys() <= there.keys():
            device["consumesCounters"].remove(consumed)


def free_elsewhere(view: View) -> None:
    """What devices of other nodes consume is not counted."""
    name = view.node["metadata"]["name"]
    away = {
        (*pool_of(item), device["name"])
        for item, device, _ in consumptions(view.slices)
        if (device.get("nodeName") or item["spec"].get("nodeName")) not in (None, name)
    }
    for claim in view.claims:
        found = results(claim["status"].get("allocation") or {})
        found[:] = [result for result in found if place(result) not in away]


def less(item: Obj) -> None:
    for found in item["spec"].get("sharedCounters") or []:
        for counter in found["counters"].values():
            counter["value"] = text(number(counter["value"]) - Decimal("0.001"))


def first_slice_of_counters(slices: list[Obj]) -> list[Obj]:
    """Of the slices of a pool that have counter sets, only one is looked at."""
    first: dict[tuple[str, str], str] = {}

    def change(item: Obj) -> None:
        if item["spec"].get("sharedCounters"):
            name = item["metadata"]["name"]
            if first.setdefault(pool_of(item), name) != name:
                item["spec"]["sharedCounters"] = []

    return changed(slices, change)


def used(world: World) -> dict[Key, dict[str, Decimal]]:
    """How much of each counter devices that are allocated consume."""
    claims = world.cluster.store.all("ResourceClaim")
    taken = {place(r) for x in claims for r in results(x["status"].get("allocation") or {})}
    found: dict[Key, dict[str, Decimal]] = {}
    for item, device, consumed in consumptions(world.cluster.list_slices()):
        if (*pool_of(item), device["name"]) in taken:
            amounts = found.setdefault(key(item, consumed), {})
            for name, amount in consumed["counters"].items():
                amounts[name] = amounts.get(name, Decimal(0)) + number(amount["value"])
    return found


def beside_used_up(world: World, _claim: Obj, allocation: Obj) -> bool:
    """Once a counter of a pool is used up, the pool has no device to give."""
    pools = {place(result)[:2] for result in results(allocation)}
    there = counters_of(world.cluster.list_slices())
    return any(
        name in there.get(found, {}) and amount >= number(there[found][name]) > 0
        for found, amounts in used(world).items()
        for name, amount in amounts.items()
        if found[0] in pools
    )


def groups(consumed: Obj) -> set[str]:
    return {*(consumed.get("compatibilityGroups") or [])}


def none_is_all(view: View) -> None:
    """A device without groups goes with all."""
    known: dict[Key, set[str]] = {}
    for item, _, consumed in consumptions(view.slices):
        known.setdefault(key(item, consumed), set()).update(groups(consumed))
    for item, _, consumed in consumptions(view.slices):
        if found := groups(consumed) or known[key(item, consumed)]:
            consumed["compatibilityGroups"] = sorted(found)


def taken_groups(view: View) -> dict[Key, list[set[str]]]:
    taken = {place(r) for x in view.claims for r in results(x["status"].get("allocation") or {})}
    found: dict[Key, list[set[str]]] = {}
    for item, device, consumed in consumptions(view.slices):
        if (*pool_of(item), device["name"]) in taken:
            found.setdefault(key(item, consumed), []).append(groups(consumed))
    return found


def in_pairs(view: View) -> None:
    """It is enough that a device has a group in common with each of the others."""
    taken = taken_groups(view)
    for item, _, consumed in consumptions(view.slices):
        others = taken.get(key(item, consumed), [])
        own = groups(consumed)
        if own and others and all(own & other for other in others):
            consumed["compatibilityGroups"] = sorted(own | set.intersection(*others))


def one_set_for_all(view: View) -> None:
    """Devices of different counter sets of a pool are compared, too."""
    taken = taken_groups(view)
    busy = {place(r) for x in view.claims for r in results(x["status"].get("allocation") or {})}
    for item in view.slices:
        for device in devices(item):
            own = [groups(x) for x in device.get("consumesCounters") or [] if groups(x)]
            others = [g for (pool, _), all_ in taken.items() if pool == pool_of(item) for g in all_]
            apart = any(g and not g & mine for g in others for mine in own)
            if apart and (*pool_of(item), device["name"]) not in busy:
                device["taints"] = [{"key": "apart", "effect": "NoSchedule"}]


DEFECTS: Defects = {
    "counters-are-free-before-eviction": reads(Listers.resource_slices, evicted_is_gone),
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
    "counter-sets-of-other-pools-count": without_unknown(in_another_pool),
    "counters-of-other-nodes-are-free": sees(free_elsewhere),
    "counters-stay-used": stays_used("consumesCounters"),
    "faults-of-slices-of-other-nodes-are-ignored": sees(elsewhere_ignored),
    "first-of-counter-sets-of-a-name": reads_all(Listers.resource_slices, first_of_a_name),
    "groups-agree-in-pairs": sees(in_pairs),
    "groups-reach-other-counter-sets": sees(one_set_for_all),
    "last-of-counters-is-kept": reads(Listers.resource_slices, less),
    "no-groups-go-with-all": sees(none_is_all),
    "one-slice-of-counter-sets": reads_all(Listers.resource_slices, first_slice_of_counters),
    "used-up-counters-block-pools": refuses(beside_used_up),
}
