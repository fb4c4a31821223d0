"""A driver is killed at its every change of a file, whatever it is written in; else often."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from conformance.drivercheck import launching
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.checks import restart
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.kills import within
from conformance.drivercheck.kills.changes import UnwatchableError, WatchedDriver
from conformance.drivercheck.process import CommandStarter, Process, Starter
from conformance.drivercheck.result import CheckResult, Outcome
from conformance.drivercheck.run import choose_checks, run
from tests.drivercheck.own_driver import OwnDriver

IN_PLACE = "writes-checkpoint-in-place"


class Unwatched:
    """A starter that cannot make its driver tell of its changes."""

    def __init__(self, starter: Starter) -> None:
        self._starter = starter

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        return self._starter(environment, log)

    def with_boot_id(self, boot_id: Path) -> Starter | None:
        return self._starter.with_boot_id(boot_id)


def checked(starter: Starter, *checks: str) -> list[CheckResult]:
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), starter))
        try:
            return list(run(bench, choose_checks(checks)).checks)
        finally:
            bench.driver.close()


@pytest.mark.everything
@pytest.mark.parametrize("check", ["preparing", "unpreparing", "preparing-and-given-up"])
def test_a_checkpoint_that_is_written_in_place_is_found_every_time(check: str) -> None:
    [found] = checked(OwnDriver(IN_PLACE), f"restart/killed-while-{check}")
    assert found.outcome is Outcome.FAILED, found
    assert "killed before change " in found.message
    assert "checkpoint.json)" in found.message


@pytest.mark.everything
def test_our_driver_may_be_killed_before_any_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart, "_KILL_SECONDS", 120.0)
    for one in checked(OwnDriver(), "restart/killed-while-*"):
        assert one.outcome is Outcome.PASSED, one
        found = re.fullmatch(r"killed before (\d+) of (\d+) changes of files", one.message)
        assert found is not None, one
        assert found[1] == found[2]


def test_what_cannot_be_watched_is_killed_often_and_the_verdict_says_how_sure_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(restart, "_KILL_SECONDS", 0.1)
    [found] = checked(Unwatched(OwnDriver()), "restart/killed-while-unpreparing")
    assert found.outcome is Outcome.PASSED, found
    assert found.message.startswith("killed at 3 moments of a call that takes ")
    assert found.message.endswith(
        "in 27 of 100 runs, not at its changes (it is not started by a command)"
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as made:
        (Path(made) / "state").mkdir()
        yield Path(made)


def watched(folder: Path, script: str) -> tuple[WatchedDriver, Process]:
    starter = CommandStarter(["sh", "-c", f"read line < begin; cd state; {script}"])
    found = WatchedDriver(starter, [folder / "state"], folder / "watch.sock")
    return found, found({"PWD": str(folder)}, folder / "state" / "log")


CHANGES = [
    *("openat state/a", "write state/a", "renameat2|rename|renameat state/b"),
    *("write state/b", "unlinkat|unlink state/b"),
]
SCRIPT = "echo said; echo one > a; (mv a b); echo two >> b; cat b > /dev/null; rm b"


@pytest.fixture
def begins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipe that a script waits for, in the folder that it is started in."""
    monkeypatch.chdir(folder)
    os.mkfifo(folder / "begin")
    return folder / "begin"


def test_changes_of_every_process_are_heard_in_their_order(folder: Path, begins: Path) -> None:
    found, process = watched(folder, SCRIPT)
    begins.write_text("go\n")
    assert process.wait(10.0)
    seen = [one.replace(f"{folder}/", "") for one in found.changes]
    assert len(seen) == len(CHANGES), seen
    for one, wanted in zip(seen, CHANGES, strict=True):
        names, _, path = wanted.partition(" ")
        assert one in [f"{name} {path}" for name in names.split("|")]


@pytest.mark.parametrize(
    ("place", "left"),
    [(1, {}), (2, {"a": ""}), (3, {"a": "one\n"}), (5, {"b": "one\ntwo\n"})],
)
def test_it_is_killed_before_the_change_is_made(
    place: int, left: dict[str, str], folder: Path, begins: Path
) -> None:
    found, process = watched(folder, SCRIPT)
    found.count_from_zero(place)
    begins.write_text("go\n")
    assert process.wait(10.0)
    assert {
        one.name: one.read_text() for one in (folder / "state").iterdir() if one.name != "log"
    } == left


def test_a_machine_that_is_not_known_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")

    class OnVax(CommandStarter):
        def announcing(self, socket: Path) -> OnVax:
            self.socket = socket
            return self

        def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
            threading.Thread(target=self.announce).start()
            return super().__call__(environment, log)

        def announce(self) -> None:
            with suppress(OSError):
                launching.announce(str(self.socket))

    found = WatchedDriver(OnVax(["true"]), [folder], folder / "watch.sock")
    with pytest.raises(UnwatchableError, match="seccomp: its system calls are not known on vax"):
        found({}, folder / "log")


def test_places_are_spread_wherever_they_are_left() -> None:
    assert sorted(within._spread(13)) == list(range(1, 14))
    assert [place for place, _ in zip(within._spread(16), range(4), strict=False)] == [1, 9, 5, 13]


def test_what_is_opened_to_be_read_is_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    opens = {"open": 1, "openat": 2}
    is_kill_point = WatchedDriver._is_kill_point

    def note(self: WatchedDriver, thread: int, number: int, arguments: tuple[int, ...]) -> bool:
        name = launching.known_syscalls()[number].name
        asked.append((name, arguments[opens[name]] if name in opens else 0))
        return is_kill_point(self, thread, number, arguments)

    monkeypatch.setattr(WatchedDriver, "_is_kill_point", note)
    monkeypatch.setattr(restart, "_KILL_SECONDS", 0.1)
    [found] = checked(OwnDriver(), "restart/killed-while-unpreparing")
    assert found.outcome is Outcome.PASSED, found
    flags = [given for name, given in asked if name in opens]
    assert flags
    assert all(given & (os.O_CREAT | os.O_TRUNC) for given in flags)
