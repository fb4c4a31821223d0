"""Counts of free candidates against what requests still need.

Counting only: which candidate goes to which request is left open, so that "not enough" is always
true. `reference_allocator.search.bounds` says at each moment what is free and what is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reference_allocator.rules.constraints import AttributeConstraint, Key, State
from reference_allocator.search.facts import RequestFacts, Values


@dataclass(slots=True, eq=False)
class Free:
    """Candidates that are free at one moment; requests with the same candidates share the object.

    Attributes:
        positions: the candidates, ascending.
        allowed: at most how many of them their pools' counters allow, once that was counted.
    """

    positions: Sequence[int]
    allowed: int | None = None


@dataclass(slots=True)
class Need:
    """The devices that requests which are alike still have to get.

    Attributes:
        facts: the facts of these requests.
        free: the free candidates for them.
        most: how many devices the neediest of them needs.
        total: how many they need together.
    """

    facts: RequestFacts
    free: Free
    most: int
    total: int


def can_satisfy(
    constraint: AttributeConstraint, constraint_index: int, state: State, needs: Sequence[Need]
) -> bool:
    """Return whether the needs can be met under one constraint of their claim."""
    under = [
        (need, need.facts.values[constraint_index])
        for need in needs
        if constraint_index in need.facts.values and need.total
    ]
    if not under:
        return True
    if constraint.kind == "distinct":
        available: set[Key] = set()
        for need, values in under:
            for position in need.free.positions:
                available |= values[position]
        # Lists have to be disjoint, so each device uses up at least one value.
        return len(available - (state or frozenset())) >= sum(need.total for need, _ in under)
    return any(_has_enough_of(value, under) for value in _common_values(state, under))


def _has_enough_of(value: Key, under: Sequence[tuple[Need, Values]]) -> bool:
    """Return whether all devices of a claim can have this value in common."""
    needed: dict[int, int] = {}
    frees: dict[int, list[Free]] = {}
    for need, values in under:
        having = [position for position in need.free.positions if value in values[position]]
        if len(having) < need.most:
            return False
        if need.facts.exclusive:
            group = need.facts.group
            needed[group] = needed.get(group, 0) + need.total
            frees.setdefault(group, []).append(Free(having))
    return enough_for_all(needed, frees) is not None


def _common_values(state: State, under: Sequence[tuple[Need, Values]]) -> Iterator[Key]:
    if state is not None:
        yield from state
        return
    need, values = under[0]
    yielded: set[Key] = set()
    for position in need.free.positions:
        for value in values[position] - yielded:
            yielded.add(value)
            yield value


def enough_for_all(needed: dict[int, int], frees: dict[int, list[Free]]) -> set[int] | None:
    """Return the candidates of requests that exclude each other; None where they are too few.

    Args:
        needed: group -> how many devices its requests need.
        frees: group -> free candidates for them.
    """
    everything: set[int] = set()
    total = 0
    for group, count in needed.items():
        positions: set[int] = set()
        for free in {id(item): item for item in frees[group]}.values():
            positions.update(free.positions)
        if count > len(positions):
            return None
        everything |= positions
        total += count
    return everything if total <= len(everything) else None
