"""Necessary conditions for the rest of a search, cheap enough to be asked at every step.

Each counts candidates that are free now against devices still needed: per request, per group of
requests that compete for the same candidates, per value of a constraint, per stock of counters.
They are optimistic in everything else, so that "impossible" is always true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reference_allocator.constraints import AttributeConstraint, Key, State
from reference_allocator.inventory import Inventory, Suitability
from reference_allocator.pools import Pool, PoolDevice
from reference_allocator.requests import ClaimRequests, Request
from reference_allocator.usage import Usage


@dataclass(frozen=True, slots=True)
class Need:
    """Devices that a request still has to get, and the free candidates for them."""

    suitability: Suitability
    count: int
    free: Sequence[int]


class Bounds:
    """Asks whether the rest of a search can succeed."""

    def __init__(
        self,
        claims: Sequence[ClaimRequests],
        candidates: Sequence[PoolDevice],
        inventory: Inventory,
        usage: Usage,
    ) -> None:
        self._claims = claims
        self._candidates = candidates
        self._inventory = inventory
        self._usage = usage

    def possible(
        self, claim_index: int, request_index: int, request: Request, index: int, start: int
    ) -> bool:
        """Whether the request can get its devices from `index` on, and all after it theirs.

        Args:
            claim_index: the claim in work.
            request_index: its request in work.
            request: the alternative of it that is being tried.
            index: how many devices it has.
            start: the first candidate that may be tried for the next.
        """
        free = [not self._usage.in_use(entry.id) for entry in self._candidates]
        exclusive: list[Need] = []
        by_group: dict[int, Sequence[int]] = {}
        for number in range(claim_index, len(self._claims)):
            claim = self._claims[number]
            needs: list[tuple[Request, Need]] = []
            first = request_index if number == claim_index else 0
            for position in range(first, len(claim.requests)):
                options = claim.requests[position]
                current = number == claim_index and position == request_index
                if current:
                    options, done, begin = [request], index, start
                else:
                    done, begin = 0, 0
                open_needs = [self._need(option, done, begin, free, by_group) for option in options]
                if not any(need is None or self._enough(need) for need in open_needs):
                    return False
                if len(options) == 1 and open_needs[0] is not None:
                    needs.append((options[0], open_needs[0]))
            states = self._usage.constraint_states[number]
            for constraint_index, constraint in enumerate(claim.constraints):
                if not _satisfiable(constraint, constraint_index, states[constraint_index], needs):
                    return False
            exclusive += [need for _, need in needs if need.suitability.exclusive]
        if not _enough_for_all(exclusive):
            return False
        together = {position for need in exclusive for position in need.free}
        return sum(need.count for need in exclusive) <= self._within_counters(together)

    def _need(
        self,
        request: Request,
        done: int,
        start: int,
        free: Sequence[bool],
        by_group: dict[int, Sequence[int]],
    ) -> Need | None:
        """What the request needs; None where nothing is known (all devices)."""
        suitability = self._inventory.suitability.get(request)
        if suitability is None:
            return None
        if request.admin_access:
            positions: Sequence[int] = [item for item in suitability.positions if item >= start]
            return Need(suitability, max(request.count - done, 0), positions)
        if suitability.group not in by_group:
            by_group[suitability.group] = [item for item in suitability.positions if free[item]]
        positions = by_group[suitability.group]
        if start:
            positions = [item for item in positions if item >= start]
        return Need(suitability, max(request.count - done, 0), positions)

    def _enough(self, need: Need) -> bool:
        if len(need.free) < need.count:
            return False
        return self._within_counters(need.free) >= need.count

    def _within_counters(self, positions: Iterable[int]) -> int:
        """At most how many of the candidates the counters of their pools allow."""
        allowed = 0
        groups: dict[tuple[int, str], list[int]] = {}
        for position in positions:
            drawn = self._inventory.counters[position]
            if not drawn:
                allowed += 1
            else:
                pool = self._inventory.pools[position]
                groups.setdefault((id(pool), drawn[0][0][0]), []).append(position)
        for members in groups.values():
            allowed += self._members_within(self._inventory.pools[members[0]], members)
        return allowed

    def _members_within(self, pool: Pool, members: Sequence[int]) -> int:
        if any(self._usage.shareable(self._candidates[position]) for position in members):
            return len(members)  # A further share draws on no counter.
        stock = self._usage.stock(pool)
        least = dict(self._inventory.counters[members[0]])
        for position in members[1:]:
            drawn = dict(self._inventory.counters[position])
            least = {key: min(least[key], drawn[key]) for key in least.keys() & drawn.keys()}
        allowed = len(members)
        for key, amount in least.items():
            if amount > 0:
                allowed = min(allowed, max(stock.left[key], 0) // amount)
        return allowed


def _satisfiable(
    constraint: AttributeConstraint,
    constraint_index: int,
    state: State,
    needs: Sequence[tuple[Request, Need]],
) -> bool:
    under = [
        (need, need.suitability.values[constraint_index])
        for _, need in needs
        if constraint_index in need.suitability.values and need.count
    ]
    if not under:
        return True
    if constraint.kind == "distinct":
        available: set[Key] = set()
        for need, values in under:
            for position in need.free:
                available |= values[position]
        # Lists have to be disjoint, so each device uses up at least one value.
        return len(available - (state or frozenset())) >= sum(need.count for need, _ in under)
    return any(
        all(
            sum(value in values[position] for position in need.free) >= need.count
            for need, values in under
        )
        and _enough_for_all(
            Need(
                need.suitability,
                need.count,
                [position for position in need.free if value in values[position]],
            )
            for need, values in under
            if need.suitability.exclusive
        )
        for value in _common_values(state, under)
    )


def _common_values(
    state: State, under: Sequence[tuple[Need, dict[int, frozenset[Key]]]]
) -> Iterator[Key]:
    if state is not None:
        yield from state
        return
    need, values = under[0]
    seen: set[Key] = set()
    for position in need.free:
        for value in values[position] - seen:
            seen.add(value)
            yield value


def _enough_for_all(needs: Iterable[Need]) -> bool:
    """Whether requests that exclude each other have enough devices together."""
    wanted: dict[int, int] = {}
    candidates: dict[int, set[int]] = {}
    total = 0
    everything: set[int] = set()
    for need in needs:
        group = need.suitability.group
        wanted[group] = wanted.get(group, 0) + need.count
        candidates.setdefault(group, set()).update(need.free)
        total += need.count
    for group, positions in candidates.items():
        if wanted[group] > len(positions):
            return False
        everything |= positions
    return total <= len(everything)
