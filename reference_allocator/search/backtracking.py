"""The search for devices: depth-first, first solution wins.

Claims in order, requests in order, devices in the order of their pools; within one request only
combinations are tried, each further device coming after the one before. This is upstream's
allocateOne, step for step, because the *first* solution is the answer. Subtrees that hold neither a
solution nor an error are cut (`reference_allocator.search.pruning`).

The recursion is written as a loop with a stack of our own (`reference_allocator.search.frames`):
its depth is the number of devices asked for, which Python's stack need not be able to hold.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from reference_allocator.cluster.pools import PoolDevice
from reference_allocator.errors import AllocationError, SearchTimeoutError
from reference_allocator.matching.matcher import PLAIN, UNSUITABLE, Matcher
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.search.frames import (
    END_OF_CLAIM,
    EXCEEDED,
    FAILED,
    FOUND,
    NOTHING_CHARGED,
    AlternativesFrame,
    DeviceFrame,
    Ending,
    Frame,
    Position,
    Tried,
)
from reference_allocator.search.pruning import START_AFTER, Pruner
from reference_allocator.search.usage import Usage

_MANY_CANDIDATES = 1024
"""The number of candidates from which on the deadline is looked at when none of them is taken."""

_CHECK_EVERY_STEPS = 16
"""The number of steps after which the deadline is looked at; who rates a device does so, too."""


class Search:
    """The search on one node after the other: each begins with nothing given out.

    Attributes:
        steps: how many partial solutions the last search looked at, counted as upstream counts.
        stack: what it has decided; of a solution all, in the order of claims and requests.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._usage = Usage(matcher)
        self.steps = 0
        self.stack: list[Frame] = []
        # Each device of a request is looked for from the first candidate on.
        self._repeats = matcher.repeats_devices
        self._claims: Sequence[ClaimRequests] = ()
        self._pruner: Pruner | None = None
        self._failures = 0
        self._next_check = 0

    def run(self, claims: Sequence[ClaimRequests]) -> bool:
        """Search on the node of the matcher's view; return whether `stack` then has a solution.

        Raises:
            AllocationError: an error was reached.
            SearchTimeoutError: the deadline passed.
        """
        self._usage.begin()
        self._claims = claims
        self.stack = []
        self.steps = self._failures = 0
        self._next_check = _CHECK_EVERY_STEPS
        try:
            ending = self._take_requests(0, 0)
            return ending is FOUND or self._backtrack(ending)
        finally:
            self._pruner = None  # It can be large.

    def _backtrack(self, ending: Ending) -> bool:
        """Go back from an ending to what can be decided in another way, until that is found."""
        stack = self.stack
        while ending is not FOUND:
            if not stack:
                return False
            frame = stack[-1]
            if isinstance(frame, tuple):
                ending = self._retry_device(frame, ending)
            elif isinstance(frame, AlternativesFrame):
                ending = self._retry_alternative(frame, ending)
            else:
                stack.pop()
                # Another choice for this claim may leave a later one an alternative with fewer
                # devices.
                ending = FAILED
        return True

    def _active_pruner(self) -> Pruner | None:
        """Return what cuts subtrees, once so much has failed that it is worth its cost."""
        if self._pruner is None:
            if self._failures < START_AFTER:
                return None
            self._pruner = Pruner(self._claims, self._usage)
        return self._pruner if self._pruner.active else None

    def _take_requests(
        self, claim_index: int, request_index: int, request: Request | None = None
    ) -> Ending:
        """Take devices from a request on, until one cannot get them or all are found.

        ``request``: the alternative of the first that is to be tried, if another one was before.
        """
        for number in range(claim_index, len(self._claims)):
            claim = self._claims[number]
            for index in range(request_index, len(claim.requests)):
                if request is None:
                    if claim.prioritized[index]:
                        self.steps += 1
                        self.stack.append(AlternativesFrame(number, index))
                    request = claim.requests[index][0]
                self.steps += 1
                if self.steps > self._next_check:
                    self._check_deadline()
                if claim.may_exceed:
                    room = ALLOCATION_RESULTS_MAX - self._count_devices(number)
                    if request.count > room:
                        return EXCEEDED
                if request.all_devices is None:
                    ending = self._take_devices(number, index, request, 0, 0)
                else:
                    ending = self._take_exactly(number, index, request, request.all_devices)
                if ending is not None:
                    return ending
                request = None
            self.steps += 1
            self.stack.append(END_OF_CLAIM)
            request_index = 0
        self.steps += 1
        return FOUND

    def _count_devices(self, claim_index: int) -> int:
        """Return how many devices a claim has."""
        return sum(isinstance(frame, tuple) and frame[0] == claim_index for frame in self.stack)

    def _take_devices(
        self,
        claim_index: int,
        request_index: int,
        request: Request,
        index: int,
        start: int,
        tried: Tried | None = None,
    ) -> Ending | None:
        """Take the devices of a request from `index` on; return None when it has all of them.

        Args:
            start: the first candidate that may be taken for the first of them.
            tried: what was tried for it before.
        """
        usage, kind, admin = self._usage, request.kind, request.admin_access
        view, taken_by, constrained = usage.matcher.view, usage.taken_by, request.constraints
        candidates, count, owner = view.candidates, request.count, (claim_index,)
        ratings = view.ratings.get(kind) or view.start_ratings(kind)
        pruner = self._active_pruner() if self._failures else None
        positions = iter(range(start, len(candidates)))
        while index < count:
            for position in positions:
                suits = ratings[position]
                if suits == UNSUITABLE:
                    continue
                entry = candidates[position]
                use = entry.use
                if (use.held or use in taken_by) and not (
                    admin and claim_index not in taken_by.get(use, ())
                ):
                    continue
                if pruner is not None:
                    tried = tried or Tried()
                    if tried.state is None:
                        total = self._count_devices(claim_index)
                        at = Position(claim_index, request_index, request, index, position, total)
                        if not pruner.is_open(at, tried):
                            return self._end_request(tried)
                    if pruner.kind_of_candidate(position) in tried.failed:
                        continue
                if suits is None:
                    suits = ratings[position] = usage.matcher.rate_device(request, entry)
                    if suits == UNSUITABLE:
                        continue
                if use.shares and usage.is_kept_by_shares(request, entry):
                    continue
                if suits != PLAIN or use.capacity:
                    undo = usage.charge(claim_index, request, entry, view.pool_of(entry))
                elif constrained:
                    undo = usage.constrain(claim_index, request, entry)
                else:
                    undo = NOTHING_CHARGED
                if undo is not None:
                    break
            else:
                return self._end_request(tried)
            frame = claim_index, request_index, request, index, position, entry, undo, tried
            if not entry.shareable:
                taken_by[use] = (*taken_by[use], claim_index) if use in taken_by else owner
            self.stack.append(frame)
            self.steps += 1
            index, tried = index + 1, None
            if self._repeats:
                positions = iter(range(len(candidates)))
        return None

    def _end_request(self, tried: Tried | None) -> Ending:
        """End a request that cannot get its next device: there is no solution from here.

        Every candidate was tried, or stands for one that was.
        """
        matcher = self._usage.matcher
        view = matcher.view
        if len(view.candidates) >= _MANY_CANDIDATES:
            self._check_deadline()
        if tried is not None and tried.state is not None and self._pruner is not None:
            self._pruner.remember_failure(tried.state)
        if view.has_invalid and matcher.rules.fails_pod_for_invalid_pool:
            invalid = next(pool for pool in view.pools if pool.invalid_reason)
            raise AllocationError(f"pool {invalid.id.pool} is invalid: {invalid.invalid_reason}")
        return FAILED

    def _take_exactly(
        self,
        claim_index: int,
        request_index: int,
        request: Request,
        devices: tuple[PoolDevice, ...],
    ) -> Ending | None:
        """Take all devices that a request for all devices needs; return None when it has them."""
        usage, kind, constrained = self._usage, request.kind, request.constraints
        view, taken_by, owner = usage.matcher.view, usage.taken_by, (claim_index,)
        for index, entry in enumerate(devices):
            use, suits = entry.use, entry.suitability.get(kind)
            if suits is None:
                suits = usage.matcher.rate_device(request, entry)
            if suits == UNSUITABLE or not usage.is_available(request, entry, claim_index):
                return FAILED
            if use.shares and usage.is_kept_by_shares(request, entry):
                return FAILED
            if suits != PLAIN or use.capacity:
                undo = usage.charge(claim_index, request, entry, view.pool_of(entry))
            elif constrained:
                undo = usage.constrain(claim_index, request, entry)
            else:
                undo = NOTHING_CHARGED
            if undo is None:
                return FAILED
            frame = claim_index, request_index, request, index, index, entry, undo, None
            if not entry.shareable:
                taken_by[use] = (*taken_by[use], claim_index) if use in taken_by else owner
            self.stack.append(frame)
            self.steps += 1
        return None if devices else FAILED  # All means one device at least.

    def _retry_device(self, frame: DeviceFrame, ending: Ending) -> Ending:
        """Give a device back that led nowhere, and go on with another."""
        claim_index, request_index, request, index, position, _, _, tried = frame
        self.stack.pop()
        self._usage.give_back(frame)
        if request.all_devices is not None:  # No other can stand in.
            return ending
        self._failures += 1
        if ending is EXCEEDED:  # Another device does not change the numbers.
            return ending
        if self.steps > self._next_check:
            self._check_deadline()
        pruner = self._active_pruner()
        if pruner is not None:
            tried = tried or Tried()
            tried.failed.add(pruner.kind_of_candidate(position))
        next_ending = self._take_devices(
            claim_index, request_index, request, index, position + 1, tried
        )
        if next_ending is None:
            return self._take_requests(claim_index, request_index + 1)
        return next_ending

    def _retry_alternative(self, frame: AlternativesFrame, ending: Ending) -> Ending:
        if ending is not EXCEEDED:
            frame.all_exceeded = False
        frame.index += 1
        alternatives = self._claims[frame.claim_index].requests[frame.request_index]
        if frame.index >= len(alternatives):
            self.stack.pop()
            return EXCEEDED if frame.all_exceeded else FAILED
        request = alternatives[frame.index]
        return self._take_requests(frame.claim_index, frame.request_index, request)

    def _check_deadline(self) -> None:
        self._next_check = self.steps + _CHECK_EVERY_STEPS
        deadline = self._usage.matcher.deadline
        if deadline is not None and time.monotonic() >= deadline:
            raise SearchTimeoutError
