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
from reference_allocator.cluster.node import NodeView
from reference_allocator.errors import AllocationError, SearchTimeoutError
from reference_allocator.matching.matcher import PLAIN, UNSUITABLE
from reference_allocator.matching.resolved import ClaimRequests, Request, TakenDevice
from reference_allocator.search.frames import (
    END_OF_CLAIM,
    AlternativesFrame,
    DeviceFrame,
    Ending,
    EndOfClaim,
    Position,
)
from reference_allocator.search.pruning import START_AFTER, Pruner
from reference_allocator.search.usage import Usage

_CHECK_EVERY = 1024
"""The number of candidates after which the deadline is looked at, if none of them is taken."""

_STEPS_MASK = 15
"""The deadline is looked at in the first step, and whenever these bits of their number are 0."""


class Search:
    """One search on one node.

    Args:
        repeats: whether each device of a request is looked for from the first candidate on, so that
            it can get several shares of one.

    Attributes:
        steps: how many partial solutions have been looked at, counted as upstream counts them.
        chosen: (claim index, request index) -> the index of the alternative that was used.
    """

    def __init__(
        self,
        claims: Sequence[ClaimRequests],
        view: NodeView,
        usage: Usage,
        deadline: float | None,
        *,
        repeats: bool = False,
    ) -> None:
        self._claims = claims
        self._view = view
        self._usage = usage
        self._deadline = deadline
        self._repeats = repeats
        self._pruner: Pruner | None = None
        self._stack: list[EndOfClaim | AlternativesFrame | DeviceFrame] = []
        self._failures = 0
        self.steps = 0
        self.chosen: dict[tuple[int, int], int] = {}

    def run(self) -> bool:
        """Search; return whether there is a solution, which `usage.results` then has by claim.

        Raises:
            AllocationError: an error was reached.
            SearchTimeoutError: the deadline passed.
        """
        stack = self._stack
        ending = self._take_requests(0, 0)
        while ending is not Ending.FOUND:
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
                ending = Ending.FAILED
        for frame in stack:
            if isinstance(frame, AlternativesFrame):
                self.chosen[frame.claim_index, frame.request_index] = frame.index
        return True

    def _step(self) -> None:
        self.steps += 1
        if not (self.steps - 1) & _STEPS_MASK:
            self._check_deadline()

    def _active_pruner(self) -> Pruner | None:
        """Return what cuts subtrees, once so much has failed that it is worth its cost."""
        if self._pruner is None:
            if self._failures < START_AFTER:
                return None
            self._pruner = Pruner(self._claims, self._view, self._usage)
        return self._pruner if self._pruner.active else None

    def _take_requests(self, claim_index: int, request_index: int) -> Ending:
        """Take devices from a request on, until one cannot get them or all are found."""
        while True:
            if claim_index >= len(self._claims):
                self._step()
                return Ending.FOUND
            claim = self._claims[claim_index]
            if request_index >= len(claim.requests):
                self._step()
                self._stack.append(END_OF_CLAIM)
                claim_index, request_index = claim_index + 1, 0
                continue
            if claim.prioritized[request_index]:
                self._step()
                self._stack.append(AlternativesFrame(claim_index, request_index))
            request = claim.requests[request_index][0]
            ending = self._take_devices(claim_index, request_index, request, 0, 0)
            if ending is not None:
                return ending
            request_index += 1

    def _continue_with(
        self, claim_index: int, request_index: int, request: Request, index: int, start: int
    ) -> Ending:
        ending = self._take_devices(claim_index, request_index, request, index, start)
        return self._take_requests(claim_index, request_index + 1) if ending is None else ending

    def _take_devices(
        self, claim_index: int, request_index: int, request: Request, index: int, start: int
    ) -> Ending | None:
        """Take the devices of a request from `index` on; return None when it has all of them."""
        usage = self._usage
        results = usage.results[claim_index]
        while True:
            # `_step`, written out here alone: the call would be 5 % of a decision.
            self.steps += 1
            if not (self.steps - 1) & _STEPS_MASK:
                self._check_deadline()
            all_devices = request.all_devices
            if all_devices is not None and not all_devices:  # All means one device at least.
                return Ending.FAILED
            if index >= request.count:
                return None
            if request.count - index > ALLOCATION_RESULTS_MAX - len(results):
                return Ending.EXCEEDED
            if all_devices is None:
                frame = DeviceFrame(claim_index, request_index, request, index, start)
                if not self._take_next(frame):
                    return Ending.FAILED
                start = 0 if self._repeats else frame.position + 1
            else:
                taken_device = self._take_exactly(request, index, claim_index)
                if taken_device is None:
                    return Ending.FAILED
                frame = DeviceFrame(
                    claim_index, request_index, request, index, 0, taken_device, only=True
                )
            self._stack.append(frame)
            index += 1

    def _take_exactly(self, request: Request, index: int, claim_index: int) -> TakenDevice | None:
        assert request.all_devices is not None
        usage = self._usage
        entry = request.all_devices[index]
        suits = entry.suitability.get(request.kind)
        if suits is None:
            suits = usage.matcher.rate_device(request, entry)
        if suits == UNSUITABLE or not usage.is_available(request, entry, claim_index):
            return None
        if usage.is_kept_by_shares(request, entry):
            return None
        if suits == PLAIN and not entry.use.capacity:
            return usage.take_plain(request, entry, claim_index, must=True)
        return usage.take(request, entry, self._view.pool_of(entry), claim_index, must=True)

    def _retry_device(self, frame: DeviceFrame, ending: Ending) -> Ending:
        """Give a device back that led nowhere, and go on with another."""
        taken_device = frame.taken_device
        assert taken_device is not None
        self._usage.give_back(taken_device)
        if frame.only:  # The request needs every device that it takes: no other can stand in.
            self._stack.pop()
            return ending
        self._failures += 1
        if ending is Ending.EXCEEDED:  # Another device does not change the numbers.
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
            return Ending.FAILED
        return self._continue_with(
            frame.claim_index,
            frame.request_index,
            frame.request,
            frame.index + 1,
            0 if self._repeats else frame.position + 1,
        )

    def _retry_alternative(self, frame: AlternativesFrame, ending: Ending) -> Ending:
        if ending is not Ending.EXCEEDED:
            frame.all_exceeded = False
        frame.index += 1
        alternatives = self._claims[frame.claim_index].requests[frame.request_index]
        if frame.index >= len(alternatives):
            self._stack.pop()
            return Ending.EXCEEDED if frame.all_exceeded else Ending.FAILED
        request = alternatives[frame.index]
        return self._continue_with(frame.claim_index, frame.request_index, request, 0, 0)

    def _take_next(self, frame: DeviceFrame) -> bool:
        """Take the next candidate that can be taken; return False where there is none."""
        usage, claim_index, request = self._usage, frame.claim_index, frame.request
        candidates = self._view.candidates
        pruner = self._active_pruner() if self._failures else None
        kind, admin = request.kind, request.admin_access
        taken_by = usage.taken_by
        for position in range(frame.position, len(candidates)):
            entry = candidates[position]
            use = entry.use
            if admin:
                if claim_index in taken_by.get(use, ()):
                    continue
            elif use.held or (taken_by and taken_by.get(use)):
                continue
            if pruner is not None:
                if frame.state is None:
                    at = Position(claim_index, frame.request_index, request, frame.index, position)
                    if not pruner.can_succeed(at):
                        break
                    frame.state = pruner.state_at(at)
                    if pruner.has_failed(frame.state):
                        break
                if frame.failed and pruner.kind_of_candidate(position) in frame.failed:
                    continue
            suits = entry.suitability.get(kind)
            if suits is None:
                suits = usage.matcher.rate_device(request, entry)
            if suits == UNSUITABLE:
                if position % _CHECK_EVERY == 0:
                    self._check_deadline()
                continue
            if use.shares and usage.is_kept_by_shares(request, entry):
                continue
            if suits == PLAIN and not use.capacity:
                taken_device = usage.take_plain(request, entry, claim_index, must=False)
            else:
                pool = self._view.pool_at[position]
                taken_device = usage.take(request, entry, pool, claim_index, must=False)
            if taken_device is None:
                continue
            frame.taken_device = taken_device
            frame.position = position
            return True
        # Every candidate was tried, or stands for one that was: from here there is no solution.
        if pruner is not None and frame.state is not None:
            pruner.remember_failure(frame.state)
        if self._view.has_invalid and usage.matcher.rules.fails_pod_for_invalid_pool:
            invalid = next(pool for pool in self._view.pools if pool.invalid_reason)
            raise AllocationError(f"pool {invalid.id.pool} is invalid: {invalid.invalid_reason}")
        return False

    def _check_deadline(self) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise SearchTimeoutError
