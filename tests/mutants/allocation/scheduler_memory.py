"""Defects in what the scheduler remembers: nothing is wrong until things come in some order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.store import name_of, uid_of
from kubesim.world import World
from tests.mutants.allocation.inputs import (
    Device,
    changed,
    devices,
    place,
    pool_of,
    reads,
    reads_all,
    results,
    used,
)
from tests.mutants.replacing import Defects, Mutation, replace


def one_of_each_name(claims: list[Obj]) -> list[Obj]:
    return list({name_of(claim): claim for claim in claims}.values())


def without_counters_once_tainted(world: World) -> None:
    tainted = set()

    def change(slices: list[Obj]) -> list[Obj]:
        for item in slices:
            if any(device.get("taints") for device in devices(item)):
                tainted.add(pool_of(item))
        return changed(slices, forget)

    def forget(resource_slice: Obj) -> None:
        for device in devices(resource_slice) if pool_of(resource_slice) in tainted else ():
            device.pop("consumesCounters", None)

    reads_all(Listers.resource_slices, change)(world)


def forgets(world: World, is_forgotten: Callable[[Obj], bool]) -> None:
    """The scheduler takes some claims that are allocated for such that are not."""

    def change(claims: list[Obj]) -> list[Obj]:
        # All are asked: who remembers must see each state.
        asked = [(claim, bool(used(claim)) and is_forgotten(claim)) for claim in claims]
        return [{**claim, "status": {}} if forgotten else claim for claim, forgotten in asked]

    reads_all(Listers.resource_claims, change)(world)


def forgets_withdrawn(world: World) -> None:
    away = set()

    def is_forgotten(claim: Obj) -> bool:
        slices = world.cluster.list_slices()
        pools = {pool_of(item) for item in slices}
        published = {
            (*pool_of(item), device["name"]) for item in slices for device in devices(item)
        }
        if any(device not in published and device[:2] in pools for device in used(claim)):
            away.add(uid_of(claim))
        return uid_of(claim) in away

    forgets(world, is_forgotten)


def known_by_slice(world: World) -> None:
    """A device that another slice publishes now is taken for another one, which is free."""
    first: dict[tuple[str, Device], str] = {}

    def is_forgotten(claim: Obj) -> bool:
        slices = {
            (*pool_of(item), device["name"]): name_of(item)
            for item in world.cluster.list_slices()
            for device in devices(item)
        }
        there = [device for device in used(claim) if device in slices]
        return any(
            first.setdefault((uid_of(claim), device), slices[device]) != slices[device]
            for device in there
        )

    forgets(world, is_forgotten)

    def sync(original: Callable[[], None]) -> None:
        # As in a real scheduler, which sees each change.
        world.scheduler.filter.listers.resource_claims()
        original()

    replace(world.scheduler.sync, sync)


def frees_with_first_pod(world: World) -> None:
    most: defaultdict[str, int] = defaultdict(int)

    def is_forgotten(claim: Obj) -> bool:
        users = len(claim["status"].get("reservedFor") or [])
        most[uid_of(claim)] = max(most[uid_of(claim)], users)
        return users < most[uid_of(claim)]

    forgets(world, is_forgotten)


def frees_with_first(shares: bool) -> Mutation:
    """Of several claims that have a device, the others are forgotten when one is released.

    Args:
        shares: whether it is so with shares of a device, or with whole devices.
    """

    def mutate(world: World) -> None:
        holders: defaultdict[Device, set[str]] = defaultdict(set)
        forgotten: set[str] = set()

        def hear(change: str, claim: Obj) -> None:
            status = {} if change == "DELETED" else claim.get("status") or {}
            found = results(status.get("allocation") or {})
            found = [item for item in found if not item.get("adminAccess")]
            now = {place(item) for item in found if bool(item.get("shareID")) is shares}
            for device, uids in holders.items():
                if device not in now and uid_of(claim) in uids:
                    uids.remove(uid_of(claim))
                    forgotten.update(uids)
            for device in now:
                holders[device].add(uid_of(claim))

        world.cluster.store.listen("ResourceClaim", hear)
        forgets(world, lambda claim: uid_of(claim) in forgotten)

    return mutate


def frees_with_monitor(world: World) -> None:
    """When a claim with admin access is released, others that have its devices are forgotten."""
    watched: dict[str, list[Device]] = {}
    forgotten: set[Device] = set()

    def hear(change: str, claim: Obj) -> None:
        status = {} if change == "DELETED" else claim.get("status") or {}
        found = [r for r in results(status.get("allocation") or {}) if r.get("adminAccess")]
        if not found:
            forgotten.update(watched.pop(uid_of(claim), []))
        else:
            watched[uid_of(claim)] = [place(item) for item in found]

    world.cluster.store.listen("ResourceClaim", hear)
    forgets(world, lambda claim: not forgotten.isdisjoint(used(claim)))


def charges_monitors(world: World, field: str) -> None:
    """Admin access to devices that have a field counts as any other."""

    def change(claim: Obj) -> None:
        charged = {
            (*pool_of(item), device["name"])
            for item in world.cluster.list_slices()
            for device in devices(item)
            if device.get(field)
        }
        for result in results(claim["status"].get("allocation") or {}):
            if place(result) in charged:
                result.pop("adminAccess", None)

    reads(Listers.resource_claims, change)(world)


DEFECTS: Defects = {
    "admin-access-consumes-capacity": partial(charges_monitors, field="allowMultipleAllocations"),
    "admin-access-consumes-counters": partial(charges_monitors, field="consumesCounters"),
    "frees-devices-with-monitor": frees_with_monitor,
    "claims-of-one-name-are-one": reads_all(Listers.resource_claims, one_of_each_name),
    "counters-end-with-taints": without_counters_once_tainted,
    "devices-in-use-are-known-by-their-slice": known_by_slice,
    "forgets-withdrawn-devices": forgets_withdrawn,
    "frees-devices-with-first-pod": frees_with_first_pod,
    "frees-devices-with-first-claim": frees_with_first(shares=False),
    "frees-devices-with-first-share": frees_with_first(shares=True),
}
