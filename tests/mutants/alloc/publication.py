"""Defects in what the scheduler makes of slices and rules that come, change, and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim.nodes.driver import SlicePublisher
from kubesim.scheduling.listers import Listers
from kubesim.store import clone, name_of, uid_of
from kubesim.world import World
from tests.mutants.alloc.pools import generation, has_duplicates
from tests.mutants.alloc.views import View, sees
from tests.mutants.allocator.alignment import takes_all
from tests.mutants.allocator.inputs import devices, reads, reads_all
from tests.mutants.allocator.pools import pool_of
from tests.mutants.replacing import Defects, Mutation, part, replace


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


def evicted_is_gone(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        if any(taint["effect"] == "NoExecute" for taint in device.get("taints") or []):
            device.pop("consumesCounters", None)


def taints_slices(world: World) -> None:
    """What rules taint is tainted in the slices themselves, but for those of a node's driver."""
    published = part(world, SlicePublisher)._stored
    before: dict[str, list[Obj]] = {}

    def resource_slices(original: Callable[[], list[Obj]]) -> list[Obj]:
        found = original()
        for stored in world.cluster.store.all("ResourceSlice"):
            seen = next(item for item in found if name_of(item) == name_of(stored))
            if name_of(stored) not in published and uid_of(stored) not in before:
                if devices(seen) != devices(stored):
                    before[uid_of(stored)] = devices(stored)
                    write(stored, devices(seen))
            elif uid_of(stored) in before and not world.cluster.store.all("DeviceTaintRule"):
                write(stored, before.pop(uid_of(stored)))
        return original()

    def write(stored: Obj, wanted: list[Obj]) -> None:
        world.cluster.store.modify(
            stored, lambda new: new["spec"].update(devices=[clone(device) for device in wanted])
        )

    replace(world.scheduler.filter.listers.resource_slices, resource_slices)


def overlooks_slices_of(version: str) -> Mutation:
    """Whoever watches v1 is not told of slices that were written in another version."""

    def mutate(world: World) -> None:
        others: set[str] = set()

        def create(original: Callable[..., Obj], obj: Obj, *args: Any, **how: Any) -> Obj:
            created = original(obj, *args, **how)
            if obj["kind"] == "ResourceSlice" and obj["apiVersion"].endswith(f"/{version}"):
                others.add(created["metadata"]["uid"])
            return created

        replace(world.api.create, create)
        told = reads_all(
            Listers.resource_slices, lambda slices: [x for x in slices if uid_of(x) not in others]
        )
        told(world)

    return mutate


DEFECTS: Defects = {
    "counters-are-free-before-eviction": reads(Listers.resource_slices, evicted_is_gone),
    "invalid-pools-stay-invalid": invalid_for_ever,
    "one-node-per-slice": reads(Listers.resource_slices, one_node),
    "rules-are-written-into-slices": taints_slices,
    "slices-of-v1beta1-are-not-watched": overlooks_slices_of("v1beta1"),
    "slices-of-v1beta2-are-not-watched": overlooks_slices_of("v1beta2"),
}
