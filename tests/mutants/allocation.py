"""Defects around the allocator: what it is told, and what becomes of its answer.

The allocator itself stays as it is, so a defect cannot hide in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from conformance.targets.base import Obj
from conformance.targets.reference.scheduling.filtering import SchedulingError
from conformance.targets.reference.scheduling.nodefit import Misfit
from conformance.targets.reference.store import clone
from conformance.targets.reference.world import World
from tests.mutants.faults import Fault
from tests.mutants.replacing import Mutation, replace

Answer = tuple[tuple[Obj, ...], Sequence[Misfit]]
Change = Callable[[Obj], None]


def wanted(claim: Obj) -> Iterator[Obj]:
    """What the requests of a claim ask for, alternatives one by one."""
    for request in requests(claim):
        if request.get("exactly"):
            yield request["exactly"]
        yield from request.get("firstAvailable") or []


def requests(claim: Obj) -> list[Obj]:
    found: list[Obj] = (claim["spec"].get("devices") or {}).get("requests") or []
    return found


def changed(objects: Sequence[Obj], change: Change) -> list[Obj]:
    copies = [clone(obj) for obj in objects]
    for copy in copies:
        change(copy)
    return copies


def reads_claims(change: Change) -> Mutation:
    """The scheduler reads something else in the claims that it allocates."""

    def mutate(world: World) -> None:
        def allocate(
            original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
        ) -> Answer:
            return original(allocator, node, changed(claims, change))

        replace(world.scheduler.filter, "allocate", allocate)

    return mutate


def reads(lister: str, change: Change) -> Mutation:
    """The scheduler reads something else in the objects of one of its listers."""

    def mutate(world: World) -> None:
        def listed(original: Callable[[], list[Obj]]) -> list[Obj]:
            return changed(original(), change)

        replace(world.scheduler.filter.listers, lister, listed)

    return mutate


def writes(change: Change) -> Mutation:
    """The scheduler writes something else than the allocation that was found."""

    def mutate(world: World) -> None:
        def reserve_claim(
            original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
        ) -> Obj:
            if allocation is not None:
                (allocation,) = changed([allocation], change)
            return original(pod, claim, allocation)

        replace(world.scheduler.binder, "reserve_claim", reserve_claim)

    return mutate


def without_request_field(field: str) -> Change:
    def change(claim: Obj) -> None:
        for item in wanted(claim):
            item.pop(field, None)

    return change


def without_device_field(field: str) -> Change:
    def change(resource_slice: Obj) -> None:
        for device in resource_slice["spec"].get("devices") or []:
            device.pop(field, None)

    return change


def no_constraints(claim: Obj) -> None:
    (claim["spec"].get("devices") or {}).pop("constraints", None)


def last_alternative_first(claim: Obj) -> None:
    for request in requests(claim):
        (request.get("firstAvailable") or []).reverse()


def one_device(claim: Obj) -> None:
    for item in wanted(claim):
        if item.get("allocationMode") != "All":
            item["count"] = 1


def one_of_all(claim: Obj) -> None:
    for item in wanted(claim):
        if item.get("allocationMode") == "All":
            item.update(allocationMode="ExactCount", count=1)


def no_class_selectors(device_class: Obj) -> None:
    (device_class.get("spec") or {}).pop("selectors", None)


def ignore_selectors(world: World) -> None:
    reads_claims(without_request_field("selectors"))(world)
    reads("device_classes", no_class_selectors)(world)


def without_all(claim: Obj) -> None:
    kept = [
        request
        for request in requests(claim)
        if (request.get("exactly") or {}).get("allocationMode") != "All"
    ]
    claim["spec"]["devices"]["requests"] = kept


def all_may_be_none(world: World) -> None:
    def allocate(
        original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
    ) -> Answer:
        try:
            found = original(allocator, node, claims)
        except SchedulingError:
            found = (), [Misfit("")]
        return found if found[0] else original(allocator, node, changed(claims, without_all))

    replace(world.scheduler.filter, "allocate", allocate)


def any_node(resource_slice: Obj) -> None:
    if resource_slice["spec"].pop("nodeName", None):
        resource_slice["spec"]["allNodes"] = True


def no_request_policies(resource_slice: Obj) -> None:
    for device in resource_slice["spec"].get("devices") or []:
        for capacity in (device.get("capacity") or {}).values():
            capacity.pop("requestPolicy", None)


def ignores_taint_rules(world: World) -> None:
    listers, store = world.scheduler.filter.listers, world.cluster.store
    replace(listers, "resource_slices", lambda _: store.all("ResourceSlice"))


def double_allocation(world: World) -> None:
    replace(world.scheduler.filter.listers, "claims", lambda _: [])


def no_consumed_capacity(claim: Obj) -> None:
    for result in results(claim["status"].get("allocation") or {}):
        result.pop("consumedCapacity", None)


def results(allocation: Obj) -> list[Obj]:
    found: list[Obj] = (allocation.get("devices") or {}).get("results") or []
    return found


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


MUTATIONS: dict[Fault, Mutation] = {
    Fault.ADMIN_ACCESS_NEEDS_FREE_DEVICE: reads_claims(without_request_field("adminAccess")),
    Fault.ALL_MAY_BE_NONE: all_may_be_none,
    Fault.ALL_TAKES_ONE: reads_claims(one_of_all),
    Fault.ANY_NODE: reads("resource_slices", any_node),
    Fault.CLAIM_CONFIG_FIRST: writes(claim_config_first),
    Fault.DOUBLE_ALLOCATION: double_allocation,
    Fault.IGNORES_CONSUMED_CAPACITY: reads("claims", no_consumed_capacity),
    Fault.IGNORES_COUNT: reads_claims(one_device),
    Fault.IGNORES_COUNTERS: reads("resource_slices", without_device_field("consumesCounters")),
    Fault.IGNORES_DEVICE_TAINTS: reads("resource_slices", without_device_field("taints")),
    Fault.IGNORES_REQUEST_POLICY: reads("resource_slices", no_request_policies),
    Fault.IGNORES_TAINT_RULES: ignores_taint_rules,
    Fault.IGNORES_TOLERATIONS: reads_claims(without_request_field("tolerations")),
    Fault.IGNORE_MATCH_ATTRIBUTE: reads_claims(no_constraints),
    Fault.IGNORE_SELECTORS: ignore_selectors,
    Fault.LAST_ALTERNATIVE_FIRST: reads_claims(last_alternative_first),
    Fault.LOSES_ADMIN_ACCESS: writes(lose_admin_access),
    Fault.LOSES_CONFIG: writes(lose_config),
    Fault.NO_NODE_SELECTOR: writes(lose_node_selector),
    Fault.ONE_DEVICE_FOR_ALL_REQUESTS: writes(first_device_for_all),
    Fault.SELECTORS_SEE_NO_ATTRIBUTES: reads("resource_slices", without_device_field("attributes")),
}
