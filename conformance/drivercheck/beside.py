"""Makes checks beside one another, on driver processes of their own.

Nearly all of a check's time the driver starts, or something is waited for. So that other checks are
made meanwhile, up to `PROCESSES` processes of the driver run, each with folders and an API server
of its own. They may be in each other's way: by a port that both want, a device or a file that both
change. So an answer that is no pass does not count while there is another process: it is asked
again when there is none. And a driver of which a second process does not come up has only one.
"""

from __future__ import annotations

import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Check
from conformance.drivercheck.result import CheckResult, Outcome
from conformance.drivercheck.runner import MAX_SILENT, Runner

PROCESSES: Final = 3
"""With more, two processors have more starts to carry out than there are waits to use."""

_START_SECONDS: Final = 10.0
"""Until another process has published its slices; it is not waited for."""

_END_SECONDS: Final = 10.0

Reporter = Callable[[CheckResult], None]


def make_checks(bench: Bench, checks: Sequence[Check], report: Reporter) -> list[CheckResult]:
    """Make checks; return their results in order. ``report`` gets each as soon as it counts."""
    units = divide([check for check in checks if not check.looks_back])
    processes = min(PROCESSES, len(units)) if bench.driver.can_have_twins else 1
    work, runner = _Work(units, report), Runner(bench)
    with _start_twins(bench, processes - 1, work):
        work.go_on(runner)
    remaining = [check for check in checks if check.name not in work.results]
    if work.twins_started and not all(check.looks_back for check in remaining):
        runner = Runner(bench, silent_checks=min(work.silent_checks, MAX_SILENT - 1))
        runner.start_anew()
    for check in remaining:
        work.results[check.name] = result = runner.make_check(check)
        report(result)
    return [work.results[check.name] for check in checks]


def divide(checks: Sequence[Check]) -> list[tuple[Check, ...]]:
    """Divide checks into units, each to be made by one process in order; long waits come early.

    The first is the first section's, so that a run begins with the driver's registration.
    """
    sections: dict[str, list[Check]] = {}
    for check in checks:
        if not check.waits:
            sections.setdefault(check.section, []).append(check)
    in_order = [tuple(section) for section in sections.values()]
    return [*in_order[:1], *((check,) for check in checks if check.waits), *in_order[1:]]


class _Work:
    """What is to be done by several processes, and what came of it.

    Attributes:
        results: name of a check -> what counts.
        twins_started: how many processes beside the first were started.
        twins: how many of them run.
        silent_checks: how many ended by a call's time limit.
        began: the first check has ended, and the driver runs.
        ended: nobody is to begin any more.
    """

    def __init__(self, units: Sequence[tuple[Check, ...]], report: Reporter) -> None:
        self.results: dict[str, CheckResult] = {}
        self.twins_started = self.twins = self.silent_checks = 0
        self.began, self.ended = threading.Event(), threading.Event()
        self._units = deque(units)
        self._report = report
        self._lock = threading.Lock()

    @contextmanager
    def count_twin(self) -> Iterator[None]:
        """Count a process as one beside the first meanwhile."""
        with self._lock:
            self.twins_started, self.twins = self.twins_started + 1, self.twins + 1
        try:
            yield
        finally:
            with self._lock:
                self.twins -= 1

    def go_on(self, runner: Runner) -> None:
        """Make checks until none is left, or this process cannot make any.

        What it leaves of a unit has no result, and is made when there is no other process.
        """
        while unit := self._take():
            for check in unit:
                if self.ended.is_set():
                    return
                with self._lock:
                    alone, twins_started = not self.twins, self.twins_started
                result = runner.make_check(check)
                self._keep(result, alone=alone and self.twins_started == twins_started)
                if runner.is_lost:
                    with self._lock:
                        self.silent_checks += runner.silent_checks
                    self._give_up()
                    return
                self.began.set()

    def _give_up(self) -> None:
        """Let nobody begin where the driver has not even begun once."""
        if not self.began.is_set():
            self.ended.set()
        self.began.set()

    def _take(self) -> tuple[Check, ...]:
        with self._lock:
            return self._units.popleft() if self._units and not self.ended.is_set() else ()

    def _keep(self, result: CheckResult, *, alone: bool) -> None:
        with self._lock:
            if alone or result.outcome is Outcome.PASSED:
                self.results[result.name] = result
                self._report(result)


@contextmanager
def _start_twins(bench: Bench, count: int, work: _Work) -> Iterator[None]:
    """Let so many other processes of the driver take part meanwhile; they have ended afterwards."""
    with ExitStack() as folders:
        # In /tmp wherever TMPDIR is: the path of a socket has at most 107 bytes.
        temporary = (
            tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp", ignore_cleanup_errors=True)
            for _ in range(count)
        )
        twins = [Bench(bench.driver.twin(Path(folders.enter_context(one)))) for one in temporary]

        def take_part(twin: Bench) -> None:
            work.began.wait()
            if work.ended.is_set():
                return
            with work.count_twin(), closing(twin.driver):
                runner = Runner(twin)
                if runner.start_beside(_START_SECONDS):
                    work.go_on(runner)

        # Daemons: who interrupts a run does not wait until a check of theirs has given up.
        threads = [threading.Thread(target=take_part, args=[twin], daemon=True) for twin in twins]
        try:
            for thread in threads:
                thread.start()
            yield
            for thread in threads:
                thread.join()
        finally:
            work.ended.set()
            work.began.set()
            for twin, thread in zip(twins, threads, strict=True):
                twin.driver.close()  # twice does no harm
                thread.join(_END_SECONDS)
            for twin in twins:
                bench.driver.take_over(twin.driver)
