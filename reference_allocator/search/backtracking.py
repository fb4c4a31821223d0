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
from reference_allocator.matching.matcher import PLAIN, UNSUITABLE
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.search.frames import (
    END_OF_CLAIM,
    EXCEEDED,
    FAILED,
    FOUND,
    AlternativesFrame,
    DeviceFrame,
    Ending,
    EndOfClaim,
    Position,
)
from reference_allocator.search.pruning import START_AFTER, Pruner
from reference_allocator.search.usage import Usage

_MANY_CANDIDATES = 1024
"""The number of candidates from which on the deadline is looked at when none of them is taken."""

_CHECK_EVERY_STEPS = 16
"""The number of steps after which the deadline is looked at; it is in the first one."""


class Search:
    """One search on one node.

    Attributes:
        steps: how many partial solutions have been looked at, counted as upstream counts them.
    """

    def __init__(self, claims: Sequence[ClaimRequests], usage: Usage) -> None:
        matcher = usage.matcher
        self._claims = claims
        self._usage = usage
        self._view = matcher.view
        # Each device of a request is looked for from the first candidate on.
        self._repeats = matcher.repeats_devices
        self._pruner: Pruner | None = None
        self._stack: list[EndOfClaim | AlternativesFrame | DeviceFrame] = []
        self._failures = 0
        self._next_check = 0
        self.steps = 0

    def run(self) -> bool:
        """Search; return whether there is a solution, which `usage.results` then has by claim.

        Raises:
            AllocationError: an error was reached.
            SearchTimeoutError: the deadline passed.
        """
        stack = self._stack
        ending = self._take_requests(0, 0)
        while ending is not FOUND:
            if not stack:
                return False
            frame = stack[-1]
            if frame.__class__ is DeviceFrame:
                ending = self._retry_device(frame, ending)
            elif frame.__class__ is AlternativesFrame:
                ending = self._retry_alternative(frame, ending)
            else:
                stack.pop()
                # Another choice for this claim may leave a later one an alternative with fewer
                # devices.
                ending = FAILED
        return True

    def list_chosen(self) -> dict[tuple[int, int], int]:
        """Return the alternatives of the solution: (claim index, request index) -> its index."""
        return {
            (frame.claim_index, frame.request_index): frame.index
            for frame in self._stack
            if isinstance(frame, AlternativesFrame)
        }

    def _active_pruner(self) -> Pruner | None:
        """Return what cuts subtrees, once so much has failed that it is worth its cost."""
        if self._pruner is None:
            if self._failures < START_AFTER:
                return None
            self._pruner = Pruner(self._claims, self._view, self._usage)
        return self._pruner if self._pruner.active else None

    def _take_requests(self, claim_index: int, request_index: int) -> Ending:
        """Take devices from a request on, until one cannot get them or all are found."""
        claims = self._claims
        while claim_index < len(claims):
            claim = claims[claim_index]
            for index in range(request_index, len(claim.requests)):
                if claim.prioritized[index]:
                    self.steps += 1
                    self._stack.append(AlternativesFrame(claim_index, index))
                ending = self._take_devices(claim_index, index, claim.requests[index][0], 0, 0)
                if ending is not None:
                    return ending
            self.steps += 1
            self._stack.append(END_OF_CLAIM)
            claim_index, request_index = claim_index + 1, 0
        self.steps += 1
        return FOUND

    def _continue_with(
        self, claim_index: int, request_index: int, request: Request, index: int, start: int
    ) -> Ending:
        ending = self._take_devices(claim_index, request_index, request, index, start)
        return self._take_requests(claim_index, request_index + 1) if ending is None else ending

    def _take_devices(
        self, claim_index: int, request_index: int, request: Request, index: int, start: int
    ) -> Ending | None:
        """Take the devices of a request from `index` on; return None when it has all of them."""
        count, all_devices = request.count, request.all_devices
        room = ALLOCATION_RESULTS_MAX - len(self._usage.results[claim_index])
        exceeds = count - index > room
        while True:
            self.steps += 1
            if self.steps > self._next_check:
                self._check_deadline()
            if index >= count:
                return FAILED if all_devices == () else None  # All means one device at least.
            if exceeds:
                return EXCEEDED
            frame = DeviceFrame(claim_index, request_index, request, index, start)
            if all_devices is None:
                if not self._take_next(frame):
                    return FAILED
                start = 0 if self._repeats else frame.position + 1
            elif self._take_exactly(frame, all_devices[index]):
                frame.only = True
            else:
                return FAILED
            self._stack.append(frame)
            index += 1

    def _take_exactly(self, frame: DeviceFrame, entry: PoolDevice) -> bool:
        """Take the device that a request for all devices needs; return False where it cannot."""
        usage, request = self._usage, frame.request
        suits = entry.suitability.get(request.kind)
        if suits is None:
            suits = usage.matcher.rate_device(request, entry)
        if suits == UNSUITABLE or not usage.is_available(request, entry, frame.claim_index):
            return False
        if entry.use.shares and usage.is_kept_by_shares(request, entry):
            return False
        if suits == PLAIN and not entry.use.capacity:
            return usage.take_plain(frame, entry, must=True)
        return usage.take(frame, entry, self._view.pool_of(entry), must=True)

    def _retry_device(self, frame: DeviceFrame, ending: Ending) -> Ending:
        """Give a device back that led nowhere, and go on with another."""
        self._usage.give_back(frame)
        if frame.only:  # The request needs every device that it takes: no other can stand in.
            self._stack.pop()
            return ending
        self._failures += 1
        if ending is EXCEEDED:  # Another device does not change the numbers.
            self._stack.pop()
            return ending
        pruner = self._active_pruner()
        if pruner is not None:
            if frame.failed is None:
                frame.failed = set()
            frame.failed.add(pruner.kind_of_candidate(frame.position))
        frame.position += 1
        if not self._take_next(frame):
            self._stack.pop()
            return FAILED
        return self._continue_with(
            frame.claim_index,
            frame.request_index,
            frame.request,
            frame.index + 1,
            0 if self._repeats else frame.position + 1,
        )

    def _retry_alternative(self, frame: AlternativesFrame, ending: Ending) -> Ending:
        if ending is not EXCEEDED:
            frame.all_exceeded = False
        frame.index += 1
        alternatives = self._claims[frame.claim_index].requests[frame.request_index]
        if frame.index >= len(alternatives):
            self._stack.pop()
            return EXCEEDED if frame.all_exceeded else FAILED
        request = alternatives[frame.index]
        return self._continue_with(frame.claim_index, frame.request_index, request, 0, 0)

    def _take_next(self, frame: DeviceFrame) -> bool:
        """Take the next candidate that can be taken; return False where there is none."""
        usage, request = self._usage, frame.request
        candidates = self._view.candidates
        pruner = self._active_pruner() if self._failures else None
        kind, admin = request.kind, request.admin_access
        taken_by = usage.taken_by
        for position in range(frame.position, len(candidates)):
            entry = candidates[position]
            suits = entry.suitability.get(kind)
            if suits == UNSUITABLE:
                continue
            use = entry.use
            if admin:
                if frame.claim_index in taken_by.get(use, ()):
                    continue
            elif use.held or use in taken_by:
                continue
            if pruner is not None:
                if frame.state is None:
                    at = Position(
                        frame.claim_index, frame.request_index, request, frame.index, position
                    )
                    if not pruner.can_succeed(at):
                        break
                    frame.state = pruner.state_at(at)
                    if pruner.has_failed(frame.state):
                        break
                if frame.failed and pruner.kind_of_candidate(position) in frame.failed:
                    continue
            if suits is None:
                suits = usage.matcher.rate_device(request, entry)
                if suits == UNSUITABLE:
                    continue
            if use.shares and usage.is_kept_by_shares(request, entry):
                continue
            if suits == PLAIN and not use.capacity:
                taken = usage.take_plain(frame, entry, must=False)
            else:
                taken = usage.take(frame, entry, self._view.pool_at[position], must=False)
            if taken:
                frame.position = position
                return True
        if len(candidates) >= _MANY_CANDIDATES:
            self._check_deadline()
        # Every candidate was tried, or stands for one that was: from here there is no solution.
        if pruner is not None and frame.state is not None:
            pruner.remember_failure(frame.state)
        if self._view.has_invalid and usage.matcher.rules.fails_pod_for_invalid_pool:
            invalid = next(pool for pool in self._view.pools if pool.invalid_reason)
            raise AllocationError(f"pool {invalid.id.pool} is invalid: {invalid.invalid_reason}")
        return False

    def _check_deadline(self) -> None:
        self._next_check = self.steps + _CHECK_EVERY_STEPS - 1
        deadline = self._usage.matcher.deadline
        if deadline is not None and time.monotonic() >= deadline:
            raise SearchTimeoutError
