"""What one attempt to allocate sees, where that depends on the node or on the claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kube.values import Obj
from kubesim.scheduling.filtering import Filter, SchedulingError
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.allocator import Allocator
from reference_allocator.index import Index
from tests.mutants.allocation.inputs import Allocate, Answer, Claims, changed
from tests.mutants.replacing import Mutation, instead

Alone = Callable[[Sequence[Obj]], tuple[Obj, ...]]
"""Allocates claims that do not know of others; empty where that does not work."""


@dataclass
class View:
    """Copies of all that counts, which may be changed.

    Attributes:
        node: for which devices are looked for.
        wanted: the claims that are to be allocated together.
        claims: all claims; those that are allocated say what is in use.
    """

    node: Obj
    wanted: list[Obj]
    slices: list[Obj]
    classes: list[Obj]
    claims: list[Obj]


def sees(change: Callable[[View], object]) -> Mutation:
    """Each attempt sees something else than there is."""

    @instead(Filter.allocate)
    def mutate(
        world: World, original: Allocate, _allocator: Allocator, node: Obj, claims: Claims
    ) -> Answer:
        known = world.scheduler.filter.listers
        found = (claims, known.resource_slices(), known.device_classes(), known.resource_claims())
        view = View(node, *([*map(clone, objects)] for objects in found))
        change(view)
        index = Index(
            world.cluster.features,
            view.slices,
            view.classes,
            view.claims,
            kubernetes=world.cluster.minor,
        )
        return original(Allocator(index), node, view.wanted)

    return mutate


def answers(change: Callable[[World, Obj, Obj, Obj], object]) -> Mutation:
    """What is found is changed: called with the node, and each claim with its allocation."""

    @instead(Filter.allocate)
    def mutate(
        world: World, original: Allocate, allocator: Allocator, node: Obj, claims: Claims
    ) -> Answer:
        allocations, misfits = original(allocator, node, claims)
        copies = [*map(clone, allocations)]
        for claim, allocation in zip(claims, copies, strict=bool(copies)):
            change(world, node, claim, allocation)
        return tuple(copies), misfits

    return mutate


def allows(other: Callable[[Alone, Sequence[Obj]], Sequence[Obj]]) -> Mutation:
    """Where nothing can be had, something is taken that is wrong."""

    @instead(Filter.allocate)
    def mutate(
        _: World, original: Allocate, allocator: Allocator, node: Obj, claims: Claims
    ) -> Answer:
        def alone(some: Sequence[Obj]) -> tuple[Obj, ...]:
            try:
                return original(allocator, node, some)[0]
            except SchedulingError:
                return ()

        if found := alone(claims):
            return found, ()
        wrong = other(alone, claims)
        if len(wrong) == len(claims):
            return tuple(wrong), ()
        return original(allocator, node, claims)

    return mutate


def by_request(alone: Alone, claims: Sequence[Obj]) -> list[Obj]:
    """Allocations in which no request knows of the others."""
    found = []
    for claim in claims:
        parts = [
            alone(changed([claim], partial(keep_one, number)))
            for number in range(len(claim["spec"]["devices"]["requests"]))
        ]
        if not parts or not all(parts):
            return []
        found.append(joined([part[0] for part in parts]))
    return found


def keep_one(number: int, claim: Obj) -> None:
    spec = claim["spec"]["devices"]
    spec.update(requests=[spec["requests"][number]], constraints=[])


def joined(parts: Sequence[Obj]) -> Obj:
    """One allocation with the devices of several."""
    whole: dict[str, Any] = clone(parts[0])
    for part in parts[1:]:
        whole["devices"]["results"] += part["devices"].get("results") or []
    return whole
