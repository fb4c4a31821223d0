"""Necessary conditions for the remainder of a search, cheap enough to be asked at every step.

Each counts candidates that are free now against devices still needed: per request, per group of
requests that compete for the same candidates, per value of a constraint, per stock of counters.
They are optimistic in everything else, so that "impossible" is always true. Claims that come later
and are alike are looked at once. No condition looks at a request that can end in an error, nor at
anything after it: only if the requests before it cannot all be satisfied is the error not reached.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.search.facts import CandidateFacts, RequestFacts
from reference_allocator.search.frames import Position
from reference_allocator.search.needs import Free, Need, can_satisfy, enough_for_all
from reference_allocator.search.partitions import Drawing
from reference_allocator.search.usage import Usage


@dataclass(slots=True)
class _LaterClaims:
    """The needs of all claims from some number on, up to the first fallible request.

    Attributes:
        shapes: the index of one claim of each shape.
        exclusive: group -> devices that mandatory exclusive requests need.
    """

    shapes: list[int]
    exclusive: dict[int, int]


class Bounds:
    """The conditions of one search: can what is still to be done succeed?"""

    def __init__(
        self,
        claims: Sequence[ClaimRequests],
        candidates: Sequence[PoolDevice],
        facts: CandidateFacts,
        usage: Usage,
    ) -> None:
        self._claims = claims
        self._candidates = candidates
        self._facts = facts
        self._usage = usage
        self._positions = {
            item.group: item.positions for item in facts.of_request.values() if item.exclusive
        }
        self._later_claims = self._count_later()
        self._drawings, self._drawing_of = _group_by_counters(candidates, facts.pools)

    def can_succeed(self, at: Position) -> bool:
        """Return whether the request in work can get its devices, and all after it theirs."""
        if at.request in self._facts.fallible:  # Its error may be the answer: nothing is cut.
            return True
        end = self._first_fallible(at.claim_index, at.request_index + 1)
        whole = end == len(self._claims[at.claim_index].requests)
        later = self._later_claims[at.claim_index + 1] if whole else _LaterClaims([], {})
        taken_by = self._usage.taken_by
        free = [not entry.use.held and entry.use not in taken_by for entry in self._candidates]
        by_group: dict[int, Free] = {}
        needs = self._needs(at.claim_index, end, free, by_group, at)
        if needs is None:
            return False
        for number in later.shapes:
            if self._needs(number, self._first_fallible(number, 0), free, by_group) is None:
                return False
        needed: dict[int, int] = dict(later.exclusive)
        frees: dict[int, list[Free]] = {
            group: [self._free_in_group(group, self._positions[group], free, by_group)]
            for group in later.exclusive
        }
        for need in needs:
            if need.facts.exclusive:
                group = need.facts.group
                needed[group] = needed.get(group, 0) + need.total
                frees.setdefault(group, []).append(need.free)
        competing = enough_for_all(needed, frees)
        return competing is not None and sum(needed.values()) <= self._count_within_counters(
            competing
        )

    def _count_later(self) -> list[_LaterClaims]:
        rests = [_LaterClaims([], {})]
        counted_shapes: set[Hashable] = set()
        for number in range(len(self._claims) - 1, -1, -1):
            claim = self._claims[number]
            end = self._first_fallible(number, 0)
            later = rests[-1]
            if end < len(claim.requests):
                later = _LaterClaims([], {})
                counted_shapes.clear()
            shapes, exclusive = later.shapes, dict(later.exclusive)
            shape = self._shape_of(claim, end)
            if shape not in counted_shapes:
                counted_shapes.add(shape)
                shapes = [number, *shapes]
            for options in claim.requests[:end]:
                facts = self._facts.of_request.get(options[0])
                if len(options) == 1 and facts is not None and facts.exclusive:
                    count = max(options[0].count, 0)
                    exclusive[facts.group] = exclusive.get(facts.group, 0) + count
            rests.append(_LaterClaims(shapes, exclusive))
        rests.reverse()
        return rests

    def _first_fallible(self, number: int, request_index: int) -> int:
        """Return the index of a claim's first request, from one on, that can end in an error.

        Where there is none it is the number of requests.
        """
        fallible, requests = self._facts.fallible, self._claims[number].requests
        if fallible:
            for position in range(request_index, len(requests)):
                if not fallible.isdisjoint(requests[position]):
                    return position
        return len(requests)

    def _shape_of(self, claim: ClaimRequests, end: int) -> Hashable:
        facts = self._facts.of_request
        return claim.constraints, tuple(
            tuple((id(facts.get(item)), item.count, item.admin_access) for item in options)
            for options in claim.requests[:end]
        )

    def _needs(
        self,
        number: int,
        end: int,
        free: Sequence[bool],
        by_group: dict[int, Free],
        at: Position | None = None,
    ) -> list[Need] | None:
        """Return what a claim needs for the requests up to `end`; None where it cannot get it.

        For the claim in work (`at`) only what is still missing counts.
        """
        claim = self._claims[number]
        merged: dict[tuple[RequestFacts, Free], Need] = {}
        for position in range(at.request_index if at else 0, end):
            options = claim.requests[position]
            missing, start = 0, 0
            if at is not None and position == at.request_index:
                options, missing, start = [at.request], at.taken_count, at.start
            possible = False
            for option in options:
                facts = self._facts.of_request.get(option)
                if facts is None:
                    possible = True
                    continue  # Nothing is known (all devices).
                count = max(option.count - missing, 0)
                free_candidates = self._free_candidates(option, facts, start, free, by_group)
                possible = possible or self._is_enough(count, free_candidates)
                if len(options) > 1:
                    continue
                need = merged.get((facts, free_candidates))
                if need is None:
                    merged[facts, free_candidates] = Need(facts, free_candidates, count, count)
                else:
                    need.most = max(need.most, count)
                    need.total += count
            if not possible:
                return None
        needs = list(merged.values())
        states = self._usage.constraint_states.get(number, claim.first_states)
        for constraint_index, constraint in enumerate(claim.constraints):
            if not can_satisfy(constraint, constraint_index, states[constraint_index], needs):
                return None
        return needs

    def _free_candidates(
        self,
        request: Request,
        facts: RequestFacts,
        start: int,
        free: Sequence[bool],
        by_group: dict[int, Free],
    ) -> Free:
        if request.admin_access:
            return Free([item for item in facts.positions if item >= start])
        free_candidates = self._free_in_group(facts.group, facts.positions, free, by_group)
        if start:
            free_candidates = Free([item for item in free_candidates.positions if item >= start])
        return free_candidates

    @staticmethod
    def _free_in_group(
        group: int, positions: Sequence[int], free: Sequence[bool], by_group: dict[int, Free]
    ) -> Free:
        free_candidates = by_group.get(group)
        if free_candidates is None:
            free_candidates = by_group[group] = Free([item for item in positions if free[item]])
        return free_candidates

    def _is_enough(self, count: int, free: Free) -> bool:
        if len(free.positions) < count:
            return False
        if free.allowed is None:
            free.allowed = self._count_within_counters(free.positions)
        return free.allowed >= count

    def _count_within_counters(self, positions: Iterable[int]) -> int:
        """Return at most how many of the candidates the counters of their pools allow."""
        allowed = 0
        members: dict[int, list[int]] = {}
        for position in positions:
            number = self._drawing_of[position]
            if number is None:
                allowed += 1
            else:
                members.setdefault(number, []).append(position)
        for number, free in members.items():
            drawing = self._drawings[number]
            allowed += drawing.count_allowed(free, self._usage.stock_of(drawing.pool))
        return allowed


def _group_by_counters(
    candidates: Sequence[PoolDevice], pools: Sequence[Pool]
) -> tuple[list[Drawing], list[int | None]]:
    """Group the candidates that draw on one counter set of a pool.

    Returns the groups, and for the position of each candidate the index of its group, if any.
    """
    members: dict[tuple[Pool, str], dict[int, PoolDevice]] = {}
    for position, (entry, pool) in enumerate(zip(candidates, pools, strict=True)):
        if entry.draws:
            (first_set, _), _ = entry.draws[0]
            members.setdefault((pool, first_set), {})[position] = entry
    number_of: list[int | None] = [None] * len(candidates)
    for number, entries in enumerate(members.values()):
        for position in entries:
            number_of[position] = number
    return [Drawing(pool, entries) for (pool, _), entries in members.items()], number_of
