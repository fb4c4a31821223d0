"""Cutting of subtrees that hold neither a solution nor an error.

Three cuts, all of which leave the first solution where it is:

- bounds: the rest cannot succeed by numbers alone (`reference_allocator.search.bounds`);
- interchangeable candidates: where one failed, its equals fail too, since exchanging the two turns
  any later solution into an earlier one;
- failure memo: a state of the search that is the same as one that failed, up to exchanging equals,
  fails too.

Whether a subtree fails as "failed" or as "exceeded" makes no difference to the result: "exceeded"
follows from numbers alone and only ever cuts what holds no solution (where errors are possible as
well, nothing is cut: see `CandidateFacts.gather`). A search starts without any of
this, because most searches succeed within a few steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from reference_allocator.cluster.node import NodeView
from reference_allocator.cluster.state import DeviceUse
from reference_allocator.matching.resolved import ClaimRequests
from reference_allocator.search.bounds import Bounds
from reference_allocator.search.facts import CandidateFacts
from reference_allocator.search.frames import Position
from reference_allocator.search.usage import Usage

START_AFTER: Final = 16
"""Devices that a search gives back before an inventory is taken."""

_MEMO_MAX: Final = 200_000


class Pruner:
    """The cuts of one search.

    Attributes:
        active: whether cuts may be made at all.
    """

    def __init__(self, claims: Sequence[ClaimRequests], view: NodeView, usage: Usage) -> None:
        self._view = view
        self._usage = usage
        self._facts = CandidateFacts.gather(claims, view, usage)
        self._bounds: Bounds | None = None
        self._failed: set[Hashable] = set()
        self._position_of: dict[DeviceUse, int] = {}
        self.active = self._facts is not None
        if self._facts is not None:
            self._bounds = Bounds(claims, view.candidates, self._facts, usage)
            self._position_of = {
                entry.use: position for position, entry in enumerate(view.candidates)
            }

    def possible(self, at: Position) -> bool:
        """See `Bounds.possible`; call only while `active`."""
        assert self._bounds is not None
        return self._bounds.possible(at)

    def kind(self, position: int) -> Hashable:
        """Equal for candidates that are interchangeable at this moment; only while `active`."""
        assert self._facts is not None
        use = self._view.candidates[position].use
        return self._facts.class_of[position], self._moment(use)

    def state(self, at: Position) -> Hashable:
        """Equal for moments of the search that can be turned into one another; while `active`.

        Free candidates count per class, apart those that the request in work may still take; for
        the others it matters what has been taken of them.
        """
        facts, usage = self._facts, self._usage
        assert facts is not None
        after = [0] * facts.classes
        before = [0] * facts.classes
        for number in facts.class_of[at.start :]:
            after[number] += 1
        for number in facts.class_of[: at.start]:
            before[number] += 1
        special: list[tuple[int, Hashable, bool]] = []
        for use in (*usage.taken_by, *usage.shares):
            place = self._position_of.get(use)
            if place is None:
                continue
            moment = self._moment(use)
            if moment == ():
                continue
            number = facts.class_of[place]
            (after if place >= at.start else before)[number] -= 1
            if moment != "taken":
                special.append((number, moment, place >= at.start))
        return (
            at.claim_index,
            at.request_index,
            id(at.request),
            at.done,
            len(usage.results[at.claim_index]),
            usage.constraint_states[at.claim_index],
            tuple(after),
            tuple(before),
            tuple(sorted(special, key=repr)),
            usage.shared_state(),
        )

    def has_failed(self, state: Hashable) -> bool:
        return state in self._failed

    def remember(self, state: Hashable) -> None:
        if len(self._failed) < _MEMO_MAX:
            self._failed.add(state)

    def _moment(self, use: DeviceUse) -> Hashable:
        """What the search has taken of a device: () nothing, "taken" all of it for good."""
        assert self._facts is not None
        claims = self._usage.taken_by.get(use)
        if claims:
            return tuple(sorted(claims)) if self._facts.has_admin else "taken"
        if self._usage.shares.get(use, 0):
            used = self._usage.capacity.get(use, {})
            return self._usage.shares[use], tuple(sorted(used.items()))
        return ()
