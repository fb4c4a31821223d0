"""Defects in what devices have to give: capacity, policies, counters."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from reference_allocator.api.quantity import Quantity, parse_quantity
from tests.mutants.allocator.inputs import (
    devices,
    reads,
    reads_claims,
    wanted,
    without_device_field,
)
from tests.mutants.replacing import Defects, Mutation


def policies(change: Callable[[Obj], object]) -> Mutation:
    """Request policies of capacities mean something else."""

    def read(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            for capacity in (device.get("capacity") or {}).values():
                if capacity.get("requestPolicy"):
                    change(capacity["requestPolicy"])

    return reads(Listers.resource_slices, read)


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
            for item in world.cluster.list_slices()
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
        found = [device for item in world.cluster.list_slices() for device in devices(item)]
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


DEFECTS: Defects = {
    "cuts-requests-to-policy-maximum": cut_to_maximum,
    "ignores-policy-default": policies(lambda policy: policy.pop("default", None)),
    "ignores-policy-step": without_range("step"),
    "ignores-capacity-requests-for-whole-devices": no_capacity_requests_of_whole_devices,
    "only-first-counter": reads(Listers.resource_slices, first_counter),
    "only-first-counter-set": reads(Listers.resource_slices, first_counter_set),
    "never-shares-devices": reads(
        Listers.resource_slices, without_device_field("allowMultipleAllocations")
    ),
    "shares-all-devices": reads(Listers.resource_slices, all_shareable),
}
