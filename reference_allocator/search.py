"""The search for devices: depth-first, first solution wins.

Claims in order, requests in order, devices in the order of their pools; within one request only
combinations are tried, each further device coming after the one before. This is upstream's
allocateOne, step for step, because the *first* solution is the answer. Subtrees that hold neither a
solution nor an error are cut (`reference_allocator.pruning`).

The recursion is written with generators on a stack of our own: its depth is the number of devices
asked for, which Python's stack need not be able to hold.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Hashable, Sequence
from enum import Enum

from reference_allocator.errors import SearchTimeoutError
from reference_allocator.pools import Pool, PoolDevice
from reference_allocator.pruning import Pruner
from reference_allocator.requests import RESULTS_MAX, ClaimRequests, Request
from reference_allocator.usage import Usage
from reference_allocator.validate import IsSelected


class Verdict(Enum):
    """How a part of the search ended."""

    FOUND = "found"
    FAILED = "failed"
    EXCEEDED = "exceeded"
    """Every way would give a claim more than RESULTS_MAX devices; other devices do not help."""


Steps = Generator["Steps", Verdict, Verdict]


class Search:
    """One search on one node.

    Attributes:
        steps: how many partial solutions have been looked at, counted as upstream counts them.
        chosen: (claim index, request index) -> the index of the alternative that was used.
    """

    def __init__(
        self,
        claims: Sequence[ClaimRequests],
        pools: Sequence[Pool],
        usage: Usage,
        is_selected: IsSelected,
        deadline: float | None,
    ) -> None:
        self._claims = claims
        self._usage = usage
        self._is_selected = is_selected
        self._deadline = deadline
        self._pool_of: dict[PoolDevice, Pool] = {
            entry: pool for pool in pools for entry in pool.devices
        }
        self._candidates = [entry for pool in pools if pool.usable for entry in pool.devices]
        self._pruner = Pruner(claims, self._candidates, self._pool_of, usage, is_selected)
        self._failures = 0
        self.steps = 0
        self.chosen: dict[tuple[int, int], int] = {}

    def run(self) -> bool:
        """Searches; afterwards `usage.results` holds the devices of each claim.

        Raises:
            AllocationError: an error was reached.
            SearchTimeoutError: the deadline passed.
        """
        stack = [self._request(0, 0)]
        verdict: Verdict | None = None
        while stack:
            try:
                # A new generator is started with None, one that waits gets its child's verdict.
                below = next(stack[-1]) if verdict is None else stack[-1].send(verdict)
            except StopIteration as stop:
                stack.pop()
                verdict = stop.value
            else:
                stack.append(below)
                verdict = None
        return verdict is Verdict.FOUND

    def _step(self) -> None:
        self.steps += 1
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise SearchTimeoutError

    def _request(self, claim_index: int, request_index: int) -> Steps:
        """A request with all its alternatives, and everything after it."""
        if claim_index >= len(self._claims):
            self._step()
            return Verdict.FOUND
        claim = self._claims[claim_index]
        if request_index >= len(claim.requests):
            self._step()
            verdict = yield self._request(claim_index + 1, 0)
            # Another choice for this claim may leave a later one an alternative with fewer devices.
            return Verdict.FAILED if verdict is Verdict.EXCEEDED else verdict
        alternatives = claim.requests[request_index]
        if not claim.prioritized[request_index]:
            return (yield self._devices(claim_index, request_index, alternatives[0], 0, 0))
        self._step()
        all_exceeded = True
        for index, alternative in enumerate(alternatives):
            verdict = yield self._devices(claim_index, request_index, alternative, 0, 0)
            if verdict is Verdict.FOUND:
                self.chosen[claim_index, request_index] = index
                return verdict
            if verdict is not Verdict.EXCEEDED:
                all_exceeded = False
        return Verdict.EXCEEDED if all_exceeded else Verdict.FAILED

    def _devices(
        self, claim_index: int, request_index: int, request: Request, index: int, start: int
    ) -> Steps:
        """The device `index` of a request, from candidate `start` on, and everything after it."""
        self._step()
        if request.all_devices is not None and not request.all_devices:
            return Verdict.FAILED
        if index >= request.count:
            return (yield self._request(claim_index, request_index + 1))
        if request.count - index > RESULTS_MAX - len(self._usage.results[claim_index]):
            return Verdict.EXCEEDED
        if request.all_devices is None:
            return (yield self._one_of_many(claim_index, request_index, request, index, start))
        entry = request.all_devices[index]
        undo = self._usage.take(request, entry, self._pool_of[entry], claim_index, must=True)
        if undo is None:
            return Verdict.FAILED
        verdict = yield self._devices(claim_index, request_index, request, index + 1, 0)
        if verdict is not Verdict.FOUND:
            self._usage.give_back(undo)
        return verdict

    def _one_of_many(
        self, claim_index: int, request_index: int, request: Request, index: int, start: int
    ) -> Steps:
        """Tries one candidate after the other for the device `index`."""
        usage, pruner = self._usage, self._pruner
        where = (claim_index, request_index, request, index)
        state: Hashable = None
        failed: set[Hashable] = set()
        checked = False
        for position in range(start, len(self._candidates)):
            entry = self._candidates[position]
            if not usage.available(request, entry, claim_index):
                continue
            pruning = pruner.active(self._failures)
            if pruning and not checked:
                checked = True
                if not pruner.possible(*where, position):
                    break
                state = pruner.state(*where, position)
                if pruner.has_failed(state):
                    break
            if pruning and failed and pruner.kind(position) in failed:
                continue
            if not self._is_selected(request, entry):
                continue
            if not usage.has_capacity(request, entry):
                continue
            undo = usage.take(request, entry, self._pool_of[entry], claim_index, must=False)
            if undo is None:
                continue
            verdict = yield self._devices(*where[:3], index + 1, position + 1)
            if verdict is Verdict.FOUND:
                return verdict
            usage.give_back(undo)
            self._failures += 1
            if verdict is Verdict.EXCEEDED:
                return verdict
            if pruner.active(self._failures):
                failed.add(pruner.kind(position))
        if state is not None:
            pruner.remember(state)
        return Verdict.FAILED
