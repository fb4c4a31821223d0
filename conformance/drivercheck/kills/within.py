"""A driver is killed within a call again and again, and looked at after each start.

Where its changes of files can be heard of (`conformance.drivercheck.kills.changes`), it is killed
before each of them, so that the verdict is the same every time; else at moments that are spread
over the time that a call takes, and the verdict says how sure it is.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from conformance.drivercheck import kubelet
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.kills.changes import UnwatchableError, WatchedDriver
from conformance.drivercheck.violations import SilenceError, ViolationError
from kube.base.text import counted
from kube.values import Obj

_LEAST_MOMENTS: Final = 3
_MOST_MOMENTS: Final = 50
_EMPTIES: Final = ("open", "creat", "truncate", "ftruncate")
"""System calls, or how they begin."""
_BEYOND: Final = 1.25
"""Times a call's length, over which moments are spread: the driver goes on after its answer."""

Method = Callable[[kubelet.Plugin], Callable[..., Any]]


def kill_within_calls(
    bench: Bench,
    begin: Callable[[], Obj],
    method: Method,
    expect: Callable[[Obj], None],
    seconds: float,
) -> str:
    """Kill the driver within calls, and look at it each time when it has started again.

    Args:
        begin: makes the claim of the next call.
        method: what of the service is called with it.
        expect: raises ViolationError if the driver does not do right by the claim afterwards.
        seconds: how long to go on.

    Returns:
        How often it was killed where.
    Raises ViolationError: it did not start again, or not do right.
    """
    calls = _RepeatedCall(bench, begin, method, expect)
    deadline = time.monotonic() + seconds
    try:
        with _watch_driver(bench) as driver:
            return calls.kill_at_changes(driver, deadline)
    except UnwatchableError as error:
        why = str(error)
    bench.clean()
    deadline = time.monotonic() + seconds
    return f"{calls.kill_at_moments(deadline)}, not at its changes ({why})"


@contextmanager
def _watch_driver(bench: Bench) -> Iterator[WatchedDriver]:
    """Start the driver so that its changes are heard of meanwhile. Raises UnwatchableError."""
    starter = bench.driver.starter
    assert starter is not None
    folders = (bench.driver.plugins, bench.driver.registry, *bench.driver.cdi_folders)
    driver = WatchedDriver(starter, folders, bench.driver.folder / "watch.sock")
    bench.driver.starter = driver
    try:
        bench.driver.restart(signal.SIGKILL)
    except (ViolationError, UnwatchableError) as error:
        bench.driver.starter = starter
        bench.driver.renew()
        raise UnwatchableError(f"it does not start when they are looked at: {error}") from None
    try:
        yield driver
    finally:
        driver.count_from_zero()
        bench.driver.starter = starter


@dataclass(frozen=True)
class _RepeatedCall:
    """Kills the driver within the same call again and again, as `kill_within_calls` says."""

    bench: Bench
    begin: Callable[[], Obj]
    method: Method
    expect: Callable[[Obj], None]

    def kill_at_changes(self, driver: WatchedDriver, deadline: float) -> str:
        claim = self.begin()
        driver.count_from_zero()
        self._call(claim)
        changes = driver.changes
        driver.count_from_zero()
        if not changes:
            raise UnwatchableError("none was seen")
        self.expect(claim)
        kills = 0
        # First where a file was just emptied or made: who writes in place has lost what was in it.
        order = [*_spread(len(changes))]
        order.sort(key=lambda change: change < 2 or not changes[change - 2].startswith(_EMPTIES))
        for change in order:
            if kills and time.monotonic() > deadline:
                break
            self.bench.clean()
            claim = self.begin()
            driver.count_from_zero(change)
            self._call(claim)
            changes_seen = driver.changes
            where = changes_seen[change - 1] if len(changes_seen) >= change else changes[change - 1]
            self._look_after_start(
                claim, f"killed before change {change} of {len(changes)} ({where})"
            )
            kills += 1
        return f"killed before {kills} of {counted(len(changes), 'change')} of files"

    def kill_at_moments(self, deadline: float) -> str:
        claim = self.begin()
        began = time.monotonic()
        self._call(claim)
        took = time.monotonic() - began
        self.expect(claim)
        kills = 0
        for number in range(_MOST_MOMENTS):
            if kills >= _LEAST_MOMENTS and time.monotonic() > deadline:
                break
            self.bench.clean()
            claim = self.begin()
            delay = _fraction(number) * took * _BEYOND
            with ThreadPoolExecutor(1) as threads:
                threads.submit(self._call, claim)
                time.sleep(delay)
                assert self.bench.driver.process is not None
                self.bench.driver.process.signal(signal.SIGKILL)
            self._look_after_start(claim, f"killed {delay * 1000:.1f} ms after the call")
            kills += 1
        sure = 100 * (1 - 0.9**kills)
        return (
            f"killed at {kills} moments of a call that takes {took * 1000:.0f} ms, so that a fault"
            f" that shows in a tenth of them is found in {sure:.0f} of 100 runs"
        )

    def _call(self, claim: Obj) -> None:
        """Call the method for a claim, whatever comes of it."""
        self.bench.driver.begin_check()
        try:
            self.method(self.bench.driver.plugin)([kubelet.claim_reference(claim)])
        except (kubelet.RefusedError, SilenceError, ValueError):
            return  # ValueError: grpc, of a channel that was closed meanwhile

    def _look_after_start(self, claim: Obj, where: str) -> None:
        try:
            self.bench.driver.restart(signal.SIGKILL)
            self.expect(claim)
        except ViolationError as error:
            raise type(error)(f"{where}: {error}") from None


def _fraction(number: int) -> float:
    """Return 0, 1/2, 1/4, 3/4, 1/8 ...: spread, however many are taken (van der Corput)."""
    fraction, weight = 0.0, 0.5
    while number:
        number, bit = divmod(number, 2)
        fraction += weight * bit
        weight /= 2
    return fraction


def _spread(most: int) -> Iterator[int]:
    """Yield 1 to ``most``, each once, in an order that is spread wherever it is left."""
    yielded: set[int] = set()
    for number in count():
        change = int(_fraction(number) * most) + 1
        if change not in yielded:
            yielded.add(change)
            yield change
        if len(yielded) == most:
            return
