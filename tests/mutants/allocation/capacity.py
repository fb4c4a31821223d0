"""Defects in what devices have to give: policies, capacity, and who has how much of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_CEILING, Decimal

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from reference_allocator.api.quantity import Quantity, parse_quantity
from tests.mutants.allocation.inputs import (
    asked,
    changed,
    devices,
    number,
    place,
    pool_of,
    reads,
    reads_all,
    reads_claims,
    refuses,
    refuses_all,
    results,
    text,
    wanted,
    without_device_field,
)
from tests.mutants.allocation.requests import split, where
from tests.mutants.allocation.views import Alone, View, allows, sees
from tests.mutants.replacing import Defects, Mutation, replace


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


def ranges(change: Callable[[Obj], object]) -> Mutation:
    return policies(lambda policy: change(policy["validRange"]) if "validRange" in policy else None)


def capacities(resource_slice: Obj) -> Iterator[tuple[Obj, Obj]]:
    for device in devices(resource_slice):
        for capacity in (device.get("capacity") or {}).values():
            yield device, capacity


def free_unless_requested(resource_slice: Obj) -> None:
    for device, capacity in capacities(resource_slice):
        if device.get("allowMultipleAllocations") and not capacity.get("requestPolicy"):
            capacity["requestPolicy"] = {"default": "0"}


def below_maximum(found: Obj) -> None:
    if "max" in found:
        found["max"] = text(number(found["max"]) - Decimal("0.001"))


def whole_numbers(found: Obj) -> None:
    for key, value in found.items():
        found[key] = str(number(value).to_integral_value(ROUND_CEILING))


def greatest_value(policy: Obj) -> None:
    if policy.get("validValues"):
        policy["validValues"] = policy["validValues"][-1:]


def was_rounded(_world: World, claim: Obj, allocation: Obj) -> bool:
    return any(
        number(amount) != number((result.get("consumedCapacity") or {}).get(name, amount))
        for result in results(allocation)
        for name, amount in asked(claim, result).items()
    )


def fills_up(world: World, _claim: Obj, allocation: Obj) -> bool:
    """The last share of a device may not take all that is left."""
    for result in results(allocation):
        others = [
            other.get("consumedCapacity") or {}
            for claim in world.cluster.store.all("ResourceClaim")
            for other in results(claim["status"].get("allocation") or {})
            if place(other) == place(result)
        ]
        for item in world.cluster.list_slices() if others and "shareID" in result else ():
            for device in devices(item):
                if (*pool_of(item), device["name"]) == place(result):
                    for name, capacity in device["capacity"].items():
                        shares = [*others, result.get("consumedCapacity") or {}]
                        taken = sum(number(share.get(name, "0")) for share in shares)
                        if taken == number(capacity["value"]):
                            return True
    return False


def not_first_shared(world: World, _claim: Obj, allocation: Obj) -> bool:
    """A share is of the first device of its pool that can be shared, or of none."""
    for result in results(allocation):
        shared = [
            device["name"]
            for item in world.cluster.list_slices()
            for device in devices(item)
            if device.get("allowMultipleAllocations") and pool_of(item) == place(result)[:2]
        ]
        if "shareID" in result and result["device"] != shared[0]:
            return True
    return False


def repeats(allocations: Sequence[Obj]) -> bool:
    found = Counter(place(result) for item in allocations for result in results(item))
    return any(count > 1 for count in found.values())


def several_of_a_request(claim: Obj) -> bool:
    return any(item.get("count", 1) > 1 for item in wanted(claim))


def shares_of_one_device(alone: Alone, claims: Sequence[Obj]) -> Sequence[Obj]:
    """A request for several devices may get shares of one."""
    found = changed(alone(changed(claims, split)), lambda _: None)
    for allocation in found:
        for result in results(allocation):
            result["request"] = result["request"].rpartition("--")[0]
    return found if any(r.get("shareID") for x in found for r in results(x)) else ()


def endless_where_missing(view: View) -> None:
    """A device without the capacity that is asked for has any amount of it."""
    names = {
        name
        for claim in view.wanted
        for item in wanted(claim)
        for name in (item.get("capacity") or {}).get("requests") or {}
    }
    for item in view.slices:
        for device in devices(item):
            for name in names - (device.get("capacity") or {}).keys():
                device.setdefault("capacity", {})[name] = {"value": "1E"}


def stays_used(field: str) -> Mutation:
    """What a claim had of devices with a field is never given back."""

    def mutate(world: World) -> None:
        past: dict[str, Obj] = {}

        def change(claims: list[Obj]) -> list[Obj]:
            with_field = {
                (*pool_of(item), device["name"])
                for item in world.cluster.list_slices()
                for device in devices(item)
                if device.get(field)
            }
            for claim in claims:
                found = results(claim["status"].get("allocation") or {})
                for result in found if with_field else ():
                    if place(result) in with_field:
                        name = f"past-{claim['metadata']['uid']}"
                        past[name] = {**claim, "metadata": {**claim["metadata"], "name": name}}
            now = {
                claim["metadata"]["uid"] for claim in claims if claim["status"].get("allocation")
            }
            return claims + [x for x in past.values() if x["metadata"]["uid"] not in now]

        reads_all(Listers.resource_claims, change)(world)

        def sync(original: Callable[[], None]) -> None:
            world.scheduler.filter.listers.resource_claims()
            original()

        replace(world.scheduler.sync, sync)

    return mutate


def room_is_size(view: View) -> None:
    """For allocationMode All, a device is as large as what is left of it."""
    if not any(item.get("allocationMode") == "All" for x in view.wanted for item in wanted(x)):
        return
    for claim in view.claims:
        for result in results(claim["status"].get("allocation") or {}):
            consumed = result.pop("consumedCapacity", None) or {}
            for item in view.slices if "shareID" in result else ():
                for device in devices(item):
                    if (*pool_of(item), device["name"]) == place(result):
                        for name, amount in consumed.items():
                            left = device["capacity"][name]
                            left["value"] = text(number(left["value"]) - number(amount))


def no_request_policies(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        for capacity in (device.get("capacity") or {}).values():
            capacity.pop("requestPolicy", None)


def no_consumed_capacity(claim: Obj) -> None:
    for result in results(claim["status"].get("allocation") or {}):
        result.pop("consumedCapacity", None)


def _above_exact_values(view: View) -> None:
    """A request for just one of the valid values gets the next."""
    valid = {
        (name, parse_quantity(str(value)).nanos)
        for item in view.slices
        for device in devices(item)
        for name, capacity in (device.get("capacity") or {}).items()
        for value in (capacity.get("requestPolicy") or {}).get("validValues") or ()
    }
    for claim in view.wanted:
        for one in wanted(claim):
            asked = (one.get("capacity") or {}).get("requests") or {}
            for name, amount in asked.items():
                nanos = parse_quantity(str(amount)).nanos
                if (name, nanos) in valid:
                    asked[name] = str(nanos // 10**9 + 1)


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
    "all-leaves-out-full-devices": sees(room_is_size),
    "capacity-requests-pass-devices-without-it": sees(endless_where_missing),
    "capacity-stays-used": stays_used("allowMultipleAllocations"),
    "claims-of-a-pod-share-nothing": refuses_all(
        lambda _, pairs: (
            repeats([allocation for _, allocation in pairs])
            and not any(repeats([allocation]) for _, allocation in pairs)
        )
    ),
    "count-takes-shares-of-one-device": allows(where(several_of_a_request, shares_of_one_device)),
    "ignores-policy-minimum": ranges(lambda found: found.update(min="0")),
    "last-of-capacity-is-kept": refuses(fills_up),
    "maximum-is-exclusive": ranges(below_maximum),
    "refuses-amounts-to-be-rounded": refuses(was_rounded),
    "requests-of-a-claim-share-nothing": refuses(lambda _w, _c, found: repeats([found])),
    "rounds-fractions-of-ranges-up": ranges(whole_numbers),
    "shares-first-device-only": refuses(not_first_shared),
    "takes-greatest-valid-value": policies(greatest_value),
    "unrequested-capacity-is-free": reads(Listers.resource_slices, free_unless_requested),
    "ignores-consumed-capacity": reads(Listers.resource_claims, no_consumed_capacity),
    "ignores-counters": reads(Listers.resource_slices, without_device_field("consumesCounters")),
    "ignores-request-policy": reads(Listers.resource_slices, no_request_policies),
    "exact-valid-values-are-rounded-up": sees(_above_exact_values),
}
