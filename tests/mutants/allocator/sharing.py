"""Defects in what devices have to give: capacity, policies, counters."""

from __future__ import annotations

from collections.abc import Callable

from conformance.targets.reference.world import World
from conformance.targets.seam.values import Obj
from reference_allocator.api.quantity import Quantity, parse_quantity
from tests.mutants.allocator.inputs import (
    devices,
    reads,
    reads_claims,
    results,
    wanted,
    without_device_field,
    writes,
)
from tests.mutants.faults import Fault
from tests.mutants.replacing import Mutation


def policies(change: Callable[[Obj], object]) -> Mutation:
    """Request policies of capacities mean something else."""

    def read(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            for capacity in (device.get("capacity") or {}).values():
                if capacity.get("requestPolicy"):
                    change(capacity["requestPolicy"])

    return reads("resource_slices", read)


def without_range(field: str) -> Mutation:
    return policies(lambda policy: (policy.get("validRange") or {}).pop(field, None))


def no_capacity_requests(claim: Obj) -> None:
    for item in wanted(claim):
        item.pop("capacity", None)


def cut_to_maximum(world: World) -> None:
    """A request gets what a policy allows at most where it asks for more."""

    def maximum(capacity: str) -> list[Quantity]:
        policies = [
            (device.get("capacity") or {}).get(capacity, {}).get("requestPolicy") or {}
            for item in world.cluster.slices()
            for device in devices(item)
        ]
        found = [(policy.get("validRange") or {}).get("max") for policy in policies]
        return [parse_quantity(text) for text in found if text]

    def change(claim: Obj) -> None:
        for item in wanted(claim):
            amounts = (item.get("capacity") or {}).get("requests") or {}
            for name, amount in amounts.items():
                limits = [*maximum(name), parse_quantity(amount)]
                amounts[name] = str(min(limits, key=lambda limit: limit.nanos))

    reads_claims(change)(world)


def no_capacity_requests_of_whole_devices(world: World) -> None:
    def change(claim: Obj) -> None:
        found = [device for item in world.cluster.slices() for device in devices(item)]
        if not any(device.get("allowMultipleAllocations") for device in found):
            no_capacity_requests(claim)

    reads_claims(change)(world)


def first_counter(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        for consumed in device.get("consumesCounters") or []:
            consumed["counters"] = dict(sorted(consumed["counters"].items())[:1])


def first_counter_set(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        del (device.get("consumesCounters") or [])[1:]


def all_shareable(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        device["allowMultipleAllocations"] = True


def lose_share_id(allocation: Obj) -> None:
    for result in results(allocation):
        result.pop("shareID", None)


def lose_consumed_capacity(allocation: Obj) -> None:
    for result in results(allocation):
        result.pop("consumedCapacity", None)


def without_groups(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        for consumed in device.get("consumesCounters") or []:
            consumed.pop("compatibilityGroups", None)


MUTATIONS: dict[Fault, Mutation] = {
    Fault.CUTS_REQUESTS_TO_POLICY_MAXIMUM: cut_to_maximum,
    Fault.IGNORES_CAPACITY_REQUESTS: reads_claims(no_capacity_requests),
    Fault.IGNORES_COMPATIBILITY_GROUPS: reads("resource_slices", without_groups),
    Fault.IGNORES_POLICY_DEFAULT: policies(lambda policy: policy.pop("default", None)),
    Fault.IGNORES_POLICY_MAXIMUM: without_range("max"),
    Fault.IGNORES_POLICY_STEP: without_range("step"),
    Fault.IGNORES_VALID_VALUES: policies(lambda policy: policy.pop("validValues", None)),
    Fault.LOSES_CONSUMED_CAPACITY: writes(lose_consumed_capacity),
    Fault.IGNORES_CAPACITY_REQUESTS_FOR_WHOLE_DEVICES: no_capacity_requests_of_whole_devices,
    Fault.ONLY_FIRST_COUNTER: reads("resource_slices", first_counter),
    Fault.ONLY_FIRST_COUNTER_SET: reads("resource_slices", first_counter_set),
    Fault.LOSES_SHARE_ID: writes(lose_share_id),
    Fault.NEVER_SHARES_DEVICES: reads(
        "resource_slices", without_device_field("allowMultipleAllocations")
    ),
    Fault.SHARES_ALL_DEVICES: reads("resource_slices", all_shareable),
}
