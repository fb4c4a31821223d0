"""Checks are made beside one another, and no process's neighbour changes a verdict."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conformance.drivercheck import beside
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.beside import divide
from conformance.drivercheck.check import Check, Level
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.process import Process
from conformance.drivercheck.result import CheckResult, DriverCheckResult, Outcome
from conformance.drivercheck.run import CHECKS, run
from conformance.drivercheck.violations import ViolationError
from tests.drivercheck.own_driver import OwnDriver

Run = Callable[[Bench], str | None]


def check(name: str, body: Run = lambda _bench: None, *, waits: bool = False) -> Check:
    return Check(name, Level.REQUIRED, "A rule.", "a/source", True, body, waits)


def run_checks(*checks: Check, starter: OwnDriver | None = None) -> DriverCheckResult:
    reported: list[CheckResult] = []
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), starter or OwnDriver()))
        try:
            result = run(bench, checks, reported.append)
        finally:
            bench.driver.close()
    assert sorted(map(str, reported)) == sorted(map(str, result.checks)), "each is reported once"
    assert [one.name for one in result.checks] == [one.name for one in checks]
    return result


def test_every_check_is_in_one_unit_and_a_run_begins_with_the_registration() -> None:
    units = divide(CHECKS)
    assert sorted(map(str, sum(units, ()))) == sorted(map(str, CHECKS))
    assert units[0][0].name == "registration/socket-appears"
    assert all(len(unit) == 1 for unit in units if unit[0].waits)
    assert units[1][0].waits


def test_checks_wait_beside_one_another() -> None:
    meeting = threading.Barrier(3)

    def meet(_bench: Bench) -> None:
        meeting.wait(60)

    named = [check("a/first"), *(check(f"a/waits-{n}", meet, waits=True) for n in range(3))]
    result = run_checks(*named)
    assert {one.outcome for one in result.checks} == {Outcome.PASSED}, result.checks
    assert result.processes.starts == 3


def test_what_fails_beside_another_process_is_asked_again_alone() -> None:
    processes: list[set[int]] = []
    meeting = threading.Barrier(3)

    def fail_beside(bench: Bench) -> None:
        assert bench.driver.process is not None
        running = {int(one.name) for one in Path("/proc").glob("[0-9]*")}
        processes.append({bench.driver.process.pid} & running)
        if len(processes) <= 3:
            meeting.wait(60)
            raise ViolationError("expected nobody else; found somebody")

    checks = [check(f"a/fails-beside-{n}", fail_beside, waits=True) for n in range(3)]
    result = run_checks(check("a/first"), *checks)
    assert {one.outcome for one in result.checks} == {Outcome.PASSED}, result.checks
    assert len(processes) == 6
    assert len(set.union(*processes[3:])) == 1, "the three were not asked of one process"


class OnlyOnce(OwnDriver):
    """A driver of which no second process comes up, as if it wanted the port of the first."""

    def __init__(self) -> None:
        super().__init__()
        self._running: Process | None = None
        self._lock = threading.Lock()
        self.refused = 0

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        with self._lock:
            process = super().__call__(environment, log)
            if self._running is not None and self._running.is_alive():
                self.refused += 1
                process.signal(signal.SIGKILL)
            else:
                self._running = process
        return process


def test_a_driver_that_runs_only_once_has_the_same_verdict() -> None:
    starter, pids = OnlyOnce(), list[int]()

    def note(bench: Bench) -> None:
        assert bench.driver.process is not None
        pids.append(bench.driver.process.pid)

    result = run_checks(
        check("a/first"), *(check(f"b/{n}", note, waits=True) for n in range(3)), starter=starter
    )
    assert {one.outcome for one in result.checks} == {Outcome.PASSED}, result.checks
    assert len(pids) == 3


def test_a_driver_that_does_not_register_is_started_once() -> None:
    started: list[Path] = []

    class Never(OwnDriver):
        def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
            started.append(log)
            process = super().__call__(environment, log)
            process.signal(signal.SIGKILL)
            return process

    result = run_checks(check("a/first"), check("b/second", waits=True), starter=Never())
    assert [one.outcome for one in result.checks] == [Outcome.FAILED, Outcome.NOT_RUN]
    assert len(started) == 1


def test_a_failure_counts_at_once_where_there_is_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(beside, "PROCESSES", 1)
    asked: list[int] = []

    def fail(_bench: Bench) -> None:
        asked.append(os.getpid())
        raise ViolationError("expected nothing; found something")

    result = run_checks(check("a/first", fail), check("b/second", fail))
    assert {one.outcome for one in result.checks} == {Outcome.FAILED}
    assert len(asked) == 2


def test_another_process_asks_with_the_same_token_and_its_rights_and_log_count() -> None:
    meeting = threading.Barrier(2)
    tokens: set[str] = set()

    def meet(bench: Bench) -> None:
        tokens.add(bench.api.token)
        with bench.driver.log.open("a") as log:
            log.write(f"log of {bench.driver.folder}\n")
        meeting.wait(60)

    def look_back(bench: Bench) -> str:
        lines = [line for line in bench.driver.log.read_text().splitlines() if "log of" in line]
        return str(len(set(lines)))

    last = Check("c/last", Level.REQUIRED, "A rule.", "a/b", False, look_back, looks_back=True)
    result = run_checks(
        check("a/first"), *(check(f"b/{n}", meet, waits=True) for n in range(2)), last
    )
    assert len(tokens) == 1
    assert result.checks[-1].message == "2"
    assert "resourceslices" in result.least_cluster_role
