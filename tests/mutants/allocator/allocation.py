"""Defects of allocations as a whole: what is in use, nodes, configuration."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from tests.mutants.allocator.inputs import (
    devices,
    reads,
    reads_claims,
    results,
    without_device_field,
    without_request_field,
    writes,
)
from tests.mutants.replacing import Defects, replace


def no_constraints(claim: Obj) -> None:
    (claim["spec"].get("devices") or {}).pop("constraints", None)


def forgets_unpublished(world: World) -> None:
    """A device that was once not published counts as free, whoever has it."""
    forgotten: set[str] = set()

    def claims(original: Callable[[], list[Obj]]) -> list[Obj]:
        published = {
            (item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"])
            for item in world.cluster.list_slices()
            for device in devices(item)
        }
        for claim in original():
            for result in results(claim["status"].get("allocation") or {}):
                if (result["driver"], result["pool"], result["device"]) not in published:
                    forgotten.add(claim["metadata"]["uid"])
        return [claim for claim in original() if claim["metadata"]["uid"] not in forgotten]

    replace(world.scheduler.filter.listers.resource_claims, claims)

    def sync(original: Callable[[], None]) -> None:
        # A real scheduler looks all the time, the reference's only when it has a pod to place.
        world.scheduler.filter.listers.resource_claims()
        original()

    replace(world.scheduler.sync, sync)


def no_class_selectors(device_class: Obj) -> None:
    (device_class.get("spec") or {}).pop("selectors", None)


def ignore_selectors(world: World) -> None:
    reads_claims(without_request_field("selectors"))(world)
    reads(Listers.device_classes, no_class_selectors)(world)


def any_node(resource_slice: Obj) -> None:
    if resource_slice["spec"].pop("nodeName", None):
        resource_slice["spec"]["allNodes"] = True


def no_request_policies(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        for capacity in (device.get("capacity") or {}).values():
            capacity.pop("requestPolicy", None)


def ignores_taint_rules(world: World) -> None:
    listers, store = world.scheduler.filter.listers, world.cluster.store
    replace(listers.resource_slices, lambda _: store.all("ResourceSlice"))


def double_allocation(world: World) -> None:
    replace(world.scheduler.filter.listers.resource_claims, lambda _: [])


def no_consumed_capacity(claim: Obj) -> None:
    for result in results(claim["status"].get("allocation") or {}):
        result.pop("consumedCapacity", None)


def lose_config(allocation: Obj) -> None:
    (allocation.get("devices") or {}).pop("config", None)


def claim_config_first(allocation: Obj) -> None:
    config = (allocation.get("devices") or {}).get("config") or []
    config.sort(key=lambda item: item["source"] != "FromClaim")


def first_device_for_all(allocation: Obj) -> None:
    found = results(allocation)
    for result in found[1:]:
        result.update({name: found[0][name] for name in ("driver", "pool", "device")})


def lose_admin_access(allocation: Obj) -> None:
    for result in results(allocation):
        result.pop("adminAccess", None)


def lose_node_selector(allocation: Obj) -> None:
    allocation.pop("nodeSelector", None)


DEFECTS: Defects = {
    "forgets-devices-without-slice": forgets_unpublished,
    "admin-access-needs-free-device": reads_claims(without_request_field("adminAccess")),
    "any-node": reads(Listers.resource_slices, any_node),
    "claim-config-first": writes(claim_config_first),
    "double-allocation": double_allocation,
    "ignores-consumed-capacity": reads(Listers.resource_claims, no_consumed_capacity),
    "ignores-counters": reads(Listers.resource_slices, without_device_field("consumesCounters")),
    "ignores-device-taints": reads(Listers.resource_slices, without_device_field("taints")),
    "ignores-request-policy": reads(Listers.resource_slices, no_request_policies),
    "ignores-taint-rules": ignores_taint_rules,
    "ignore-match-attribute": reads_claims(no_constraints),
    "ignore-selectors": ignore_selectors,
    "loses-admin-access": writes(lose_admin_access),
    "loses-config": writes(lose_config),
    "no-node-selector": writes(lose_node_selector),
    "one-device-for-all-requests": writes(first_device_for_all),
}
