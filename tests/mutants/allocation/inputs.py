"""What the allocator is told, and what becomes of its answer: here its defects are put in.

The allocator itself stays as it is, so a defect cannot hide in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from kube.values import Obj
from kubesim.scheduling.binding import Binder
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.listers import Listers
from kubesim.scheduling.nodefit import Misfit
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api.quantity import parse_quantity
from tests.mutants.replacing import Mutation, instead

Answer = tuple[tuple[Obj, ...], Sequence[Misfit]]
Allocate = Callable[..., Answer]
Claims = Sequence[Obj]


Change = Callable[[Obj], None]


Lister = Callable[[Listers], list[Obj]]


def wanted(claim: Obj) -> Iterator[Obj]:
    """What the requests of a claim ask for, alternatives one by one."""
    for request in requests(claim):
        if request.get("exactly"):
            yield request["exactly"]
        yield from request.get("firstAvailable") or []


def requests(claim: Obj) -> list[Obj]:
    found: list[Obj] = (claim["spec"].get("devices") or {}).get("requests") or []
    return found


def devices(resource_slice: Obj) -> list[Obj]:
    return resource_slice["spec"].get("devices") or []


def changed(objects: Sequence[Obj], change: Change) -> list[Obj]:
    copies = [clone(obj) for obj in objects]
    for copy in copies:
        change(copy)
    return copies


def reads_claims(change: Change) -> Mutation:
    """The scheduler reads something else in the claims that it allocates."""

    @instead(Filter.allocate)
    def mutate(_: World, original: Allocate, allocator: Any, node: Obj, claims: Claims) -> Answer:
        return original(allocator, node, changed(claims, change))

    return mutate


def refuses(wrong: Callable[[World, Obj, Obj], bool]) -> Mutation:
    """An allocation that would be right is not made: of a claim, the devices it would get."""
    return refuses_all(lambda world, pairs: any(wrong(world, *pair) for pair in pairs))


def refuses_all(wrong: Callable[[World, list[tuple[Obj, Obj]]], bool]) -> Mutation:
    """The same, where it shows in all claims of a pod, each with what it would get."""

    @instead(Filter.allocate)
    def mutate(
        world: World, original: Allocate, allocator: Any, node: Obj, claims: Claims
    ) -> Answer:
        found = original(allocator, node, claims)
        pairs = [*zip(claims, found[0], strict=False)]
        return ((), [Misfit("cannot allocate all claims")]) if wrong(world, pairs) else found

    return mutate


def reads(lister: Lister, change: Change) -> Mutation:
    """The scheduler reads something else in the objects of one of its listers."""
    return reads_all(lister, lambda objects: changed(objects, change))


def reads_all(lister: Lister, change: Callable[[list[Obj]], list[Obj]]) -> Mutation:
    """The scheduler reads other objects from one of its listers."""

    return instead(lister)(lambda _, original: change(original()))


def writes(change: Change) -> Mutation:
    """The scheduler writes something else than the allocation that was found."""

    @instead(Binder.reserve_claim)
    def mutate(
        _: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
    ) -> Obj:
        if allocation is not None:
            (allocation,) = changed([allocation], change)
        return original(pod, claim, allocation)

    return mutate


def without_request_field(field: str) -> Change:
    def change(claim: Obj) -> None:
        for item in wanted(claim):
            item.pop(field, None)

    return change


def without_device_field(field: str) -> Change:
    def change(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            device.pop(field, None)

    return change


def results(allocation: Obj) -> list[Obj]:
    found: list[Obj] = (allocation.get("devices") or {}).get("results") or []
    return found


def pool_of(resource_slice: Obj) -> tuple[str, str]:
    spec = resource_slice["spec"]
    return spec["driver"], spec["pool"]["name"]


Device = tuple[str, str, str]


def used(claim: Obj) -> list[Device]:
    return [place(result) for result in results(claim["status"].get("allocation") or {})]


def place(result: Obj) -> Device:
    return result["driver"], result["pool"], result["device"]


def constraints_of(claim: Obj) -> list[Obj]:
    found: list[Obj] = (claim["spec"].get("devices") or {}).get("constraints") or []
    return found


def takes_all(claim: Obj) -> bool:
    return any(item.get("allocationMode") == "All" for item in wanted(claim))


def asked(claim: Obj, result: Obj) -> dict[str, str]:
    """How much of each capacity the request of a device asks for."""
    main, _, alternative = result["request"].partition("/")
    for request in requests(claim):
        if request["name"] == main:
            items = request.get("firstAvailable") or [request.get("exactly") or {}]
            for item in items:
                if not alternative or item["name"] == alternative:
                    found: dict[str, str] = (item.get("capacity") or {}).get("requests") or {}
                    return found
    return {}


def number(text: str) -> Decimal:
    return Decimal(parse_quantity(text).nanos) / 10**9


def text(amount: Decimal) -> str:
    return f"{(amount * 1000).to_integral_value(ROUND_CEILING)}m"


def consumptions(slices: Sequence[Obj]) -> Iterator[tuple[Obj, Obj, Obj]]:
    """Slice, device, and what it consumes of one counter set."""
    for item in slices:
        for device in devices(item):
            for consumed in device.get("consumesCounters") or []:
                yield item, device, consumed
