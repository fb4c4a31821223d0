"""Defects of capacity in fractions of a unit."""

from __future__ import annotations

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from reference_allocator.api.quantity import parse_quantity
from tests.mutants.allocation.capacity import policies
from tests.mutants.allocation.inputs import reads, results
from tests.mutants.replacing import Defects, Mutation

UNIT = 10**9


def whole(text: str) -> str:
    """A quantity rounded up to whole units, if it has fractions."""
    nanos = parse_quantity(text).nanos
    return str(-(-nanos // UNIT)) if nanos % UNIT else text


def in_whole_units(*fields: str) -> Mutation:
    def change(policy: Obj) -> None:
        found = policy.get("validRange") or {}
        found.update({field: whole(text) for field, text in found.items() if field in fields})

    return policies(change)


def consumed_in_whole_units(world: World) -> None:
    def change(claim: Obj) -> None:
        for result in results(claim["status"].get("allocation") or {}):
            amounts = result.get("consumedCapacity") or {}
            amounts.update({name: whole(text) for name, text in amounts.items()})

    reads(Listers.resource_claims, change)(world)


def half_units_are_nothing(world: World) -> None:
    def change(claim: Obj) -> None:
        for result in results(claim["status"].get("allocation") or {}):
            amounts = result.get("consumedCapacity") or {}
            for name, text in amounts.items():
                amounts[name] = str(parse_quantity(text).nanos // UNIT)

    reads(Listers.resource_claims, change)(world)


DEFECTS: Defects = {
    "maximum-is-rounded-to-whole-units": in_whole_units("max"),
    "shares-below-a-unit-consume-nothing": half_units_are_nothing,
    "shares-consume-whole-units": consumed_in_whole_units,
}
