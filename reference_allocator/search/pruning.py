"""Cutting of subtrees that hold neither a solution nor an error.

Three cuts, all of which leave the first solution where it is:

- bounds: what is left to do cannot succeed by numbers alone (`reference_allocator.search.bounds`);
- interchangeable candidates: where one failed, its equals fail too, since exchanging the two turns
  any later solution into an earlier one;
- failure memo: a state of the search that is the same as one that failed, up to exchanging equals,
  fails too.

Whether a subtree fails as "failed" or as "exceeded" makes no difference to the result: "exceeded"
follows from numbers alone and only ever cuts what holds no solution (where errors are possible as
well, nothing is cut: see `CandidateFacts.gather`). A search starts without any of this, because
most searches succeed within a few steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from reference_allocator.cluster.state import DeviceUse
from reference_allocator.matching.resolved import ClaimRequests
from reference_allocator.search.bounds import Bounds
from reference_allocator.search.facts import CandidateFacts
from reference_allocator.search.frames import Position, Tried
from reference_allocator.search.usage import Usage

START_AFTER: Final = 16
"""The number of devices that a search gives back before it gathers facts, which costs time."""

_MEMO_MAX: Final = 200_000


class Pruner:
    """The cuts of one search.

    Attributes:
        active: whether cuts may be made at all.
    """

    def __init__(self, claims: Sequence[ClaimRequests], usage: Usage) -> None:
        view = usage.matcher.view
        self._view = view
        self._usage = usage
        self._facts = CandidateFacts.gather(claims, view, usage)
        self._bounds: Bounds | None = None
        self._failed: set[Hashable] = set()
        self._position_of: dict[DeviceUse, int] = {}
        self.active = self._facts is not None
        # Where a device can be had several times by one request, counting devices says nothing.
        self._counts_devices = not usage.matcher.repeats_devices or not any(
            entry.shareable for entry in view.candidates
        )
        if self._facts is not None:
            self._bounds = Bounds(claims, view.candidates, self._facts, usage)
            self._position_of = {
                entry.use: position for position, entry in enumerate(view.candidates)
            }

    def is_open(self, at: Position, tried: Tried) -> bool:
        """Return whether there may be a solution from a point on; call while `active`.

        ``tried``: gets the state of the search at that point, which it does not have yet.
        """
        assert self._bounds is not None
        if self._counts_devices and not self._bounds.can_succeed(at):
            return False
        tried.state = self._state_at(at)
        return tried.state not in self._failed

    def kind_of_candidate(self, position: int) -> Hashable:
        """Return a key, equal for candidates that are interchangeable now; only while `active`."""
        assert self._facts is not None
        use = self._view.candidates[position].use
        return self._facts.class_of[position], self._use_by_search(use)

    def _state_at(self, at: Position) -> Hashable:
        """Return a key, equal for moments that can be turned into one another; while `active`.

        Free candidates count per class, separately for those that the request in work may still
        take; for the others it matters what has been taken of them.
        """
        facts, usage = self._facts, self._usage
        assert facts is not None
        free_from_start = [0] * facts.classes
        free_before_start = [0] * facts.classes
        for number in facts.class_of[at.start :]:
            free_from_start[number] += 1
        for number in facts.class_of[: at.start]:
            free_before_start[number] += 1
        special: list[tuple[int, Hashable, bool]] = []
        for use in (*usage.taken_by, *usage.shares):
            position = self._position_of.get(use)
            if position is None:
                continue
            use_by_search = self._use_by_search(use)
            if use_by_search == ():
                continue
            number = facts.class_of[position]
            (free_from_start if position >= at.start else free_before_start)[number] -= 1
            if use_by_search != "taken":
                special.append((number, use_by_search, position >= at.start))
        return (
            at.claim_index,
            at.request_index,
            id(at.request),
            at.taken_count,
            at.total,
            usage.constraint_states.get(at.claim_index, at.request.first_states),
            tuple(free_from_start),
            tuple(free_before_start),
            tuple(sorted(special, key=repr)),
            usage.shared_state(),
        )

    def remember_failure(self, state: Hashable) -> None:
        """Remember that the search has failed from a state of `Tried.state`."""
        if len(self._failed) < _MEMO_MAX:
            self._failed.add(state)

    def _use_by_search(self, use: DeviceUse) -> Hashable:
        """Return what the search has taken of a device: () nothing, "taken" all of it for good."""
        assert self._facts is not None
        claims = self._usage.taken_by.get(use)
        if claims:
            return tuple(sorted(claims)) if self._facts.has_admin else "taken"
        shares = self._usage.shares.get(use)
        if shares is not None:
            count, amounts = shares
            return count, tuple(sorted(amounts.items()))
        return ()
