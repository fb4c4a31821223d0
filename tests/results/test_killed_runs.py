"""A run that is killed at any moment, and resumed, ends as one that nobody disturbed."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.certify.contradictions import find_contradictions
from conformance.cli.entry import main
from conformance.engine.setup import planned
from conformance.results.read import load_results
from conformance.results.write import FILE_NAME
from conformance.scenario.selection import select

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([__name__])  # a run begins within a tenth of a second
_SELECTED = ["run", "--target", "reference", "-k", "core/exact", "-k", "core/two"]
_CHANGES = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir"}


class Moments:
    """Counts what a run does to the files in a folder, and kills the process just before one.

    ``last``: the number of that moment, from 1, or what happens then, for example
    ``os.rename junit.xml.tmp``; 0 and "" are none.
    """

    def __init__(self, folder: Path, last: int | str) -> None:
        self._folder = str(folder)
        self._last = last
        self.number = 0

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CHANGES and str(arguments[0]).startswith(self._folder):
            writes = event != "open" or arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes:
                self.count(f"{event} {Path(str(arguments[0])).name}")

    def count(self, what: str) -> None:
        self.number += 1
        if self._last in (self.number, what):
            os.kill(os.getpid(), signal.SIGKILL)


def _run(arguments: list[str], folder: Path, last: int | str, said: Path) -> None:
    """Run the command line in this process; ``said``: what it prints, and how many moments."""
    with said.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    moments = Moments(folder, last)
    sys.addaudithook(moments.audit)
    fsync: Callable[[Any], None] = os.fsync

    def counted(fd: Any) -> None:
        moments.count("fsync")
        fsync(fd)

    os.fsync = counted
    sys.argv = ["dra-conformance", *_SELECTED, *arguments]
    try:
        main()
    finally:
        said.with_suffix(".moments").write_text(str(moments.number))


class Trial:
    """A run of a folder, with what it printed and did the last time."""

    def __init__(self, place: Path) -> None:
        self.folder, self._said = place / "run", place / "said"

    def run(self, option: str, last: int | str = 0, seconds: float | None = None) -> int | None:
        """Run with ``-o`` or ``--resume``; killed at a moment, or after a time; the exit code."""
        arguments = ([option, str(self.folder)], self.folder, last, self._said)
        process = _FORKING.Process(target=_run, args=arguments)
        process.start()
        process.join(seconds or 60)
        process.kill()
        process.join()
        return process.exitcode

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def moments(self) -> int:
        """How often it changed something in its folder."""
        return int(self._said.with_suffix(".moments").read_text())

    def outcomes(self) -> Counter[tuple[str, str]]:
        """Scenario and outcome -> results, once the files agree that all had one."""
        result = load_results(self.folder / FILE_NAME)
        assert find_contradictions(result, [planned(item) for item in select()]) == ()
        names = Counter(event.scenario.id for event in result.finished)
        assert names == Counter(item.id for item in result.run.planned)
        return Counter((event.scenario.id, str(event.outcome)) for event in result.finished)

    def reports(self) -> Counter[str]:
        """Scenarios in each kind of report that is made while the run goes."""
        cases = ET.parse(self.folder / "junit.xml").findall(".//testcase")
        results = list((self.folder / "allure-results").glob("*-result.json"))
        return Counter(junit=len(cases), allure=len(results))

    def end(self) -> None:
        """Resume it, or begin anew where it had come to nothing, or to its end."""
        code = self.run("--resume")
        assert "Traceback" not in self.said
        if code == 2 and "has a result" in self.said:
            return
        if code == 2:
            assert "leave --resume out" in self.said or "run again" in self.said, self.said
            code = self.run("-o")
        assert code == 0, self.said


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """One that nobody disturbed."""
    trial = Trial(tmp_path_factory.mktemp("whole"))
    assert trial.run("-o") == 0, trial.said
    return trial


def check_like(trial: Trial, whole: Trial) -> None:
    """Check that a trial that was resumed has what the undisturbed one has, each once."""
    assert trial.outcomes() == whole.outcomes()
    if "has a result" in trial.said:  # it was killed while it wrote reports
        assert "`dra-conformance render " in trial.said
    else:
        assert trial.reports() == whole.reports()
        assert not [*trial.folder.glob("*.tmp"), *trial.folder.glob("*resuming*")]


@pytest.mark.parametrize(
    "moment",
    [
        "os.mkdir run",
        "open results.ndjson",
        "os.mkdir allure-results",
        "fsync",
        "os.rename junit.xml.tmp",
        "os.rename report.html.tmp",
    ],
)
def test_a_killed_run_is_resumed(moment: str, whole: Trial, tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    assert trial.run("-o", moment) == -signal.SIGKILL
    trial.end()
    check_like(trial, whole)


@pytest.fixture(scope="module")
def half(whole: Trial, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result file of a run that was killed while it wrote its third line."""
    file = tmp_path_factory.mktemp("half") / FILE_NAME
    lines = (whole.folder / FILE_NAME).read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    return file


def resumable(half: Path, place: Path) -> Trial:
    trial = Trial(place)
    trial.folder.mkdir(parents=True)
    shutil.copy(half, trial.folder / FILE_NAME)
    return trial


@pytest.mark.parametrize(
    "moment",
    [
        "open results.resuming.ndjson.tmp",
        "os.rename results.resuming.ndjson.tmp",
        "os.rename results.resuming.ndjson",
        "os.rename junit.xml.tmp",
    ],
)
def test_a_killed_resumption_is_resumed(
    moment: str, whole: Trial, half: Path, tmp_path: Path
) -> None:
    trial = resumable(half, tmp_path)
    assert trial.run("--resume", moment) == -signal.SIGKILL
    trial.end()
    check_like(trial, whole)


@pytest.mark.everything
@pytest.mark.parametrize("option", ["-o", "--resume"])
def test_at_whatever_change_of_its_folder(
    option: str, whole: Trial, half: Path, tmp_path: Path
) -> None:
    if option == "--resume":
        undisturbed = resumable(half, tmp_path / "undisturbed")
        undisturbed.run(option)
    else:
        undisturbed = whole
    assert undisturbed.moments > 20
    for number in range(1, undisturbed.moments + 1):
        place = tmp_path / str(number)
        trial = resumable(half, place) if option == "--resume" else Trial(place)
        place.mkdir(exist_ok=True)
        assert trial.run(option, number) == -signal.SIGKILL
        trial.end()
        check_like(trial, whole)


@pytest.mark.everything
@pytest.mark.parametrize("seed", range(20))
def test_at_whatever_time(seed: int, whole: Trial, tmp_path: Path) -> None:
    moments = random.Random(seed)
    trial = Trial(tmp_path)
    trial.run("-o", seconds=moments.uniform(0.2, 2.0))
    trial.run("--resume", seconds=moments.uniform(0.2, 2.0))
    trial.end()
    check_like(trial, whole)
