"""Sessions beside twenty plugins of others: each scenario has one result, which is right."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.data import scenarios_dir
from conformance.results.read import load_results
from tests.programs import ended

pytestmark = pytest.mark.everything

CORE = scenarios_dir() / "core"
FAILING = "two-requests-two-devices"
PASSING = ("pod-claim-with-both-sources-rejected", "all-mode-takes-every-matching-device")
RIGHT = {FAILING: "failed", **dict.fromkeys(PASSING, "passed")}


class Row(NamedTuple):
    """A plugin, the options with which it does something, and what comes of it."""

    packages: str
    options: str = ""
    code: int = 1
    outcomes: dict[str, str] = RIGHT
    attempts: int = 0


LOST = dict.fromkeys(RIGHT, "lost")
ROWS = (
    Row("pytest-cov==7.1.0 coverage", "--cov=."),
    # It makes tests of functions, and ends the session at an item that is none.
    Row("pytest-flakefinder==1.1.0", "--flake-finder", code=3, outcomes=LOST),
    # The process that it makes for a test ends without a report of it.
    Row("pytest-forked==1.7.5 py", "--forked", outcomes=LOST),
    Row("pytest-github-actions-annotate-failures==0.4.2"),
    Row("pytest-html==4.2.0 pytest-metadata", "--html=page.html"),
    Row("pytest-instafail==0.5.0", "--instafail"),
    Row("pytest-json-ctrf==0.6.1", "--ctrf=ctrf.json"),
    Row("pytest-json-report==1.5.0 pytest-metadata", "--json-report"),
    Row("pytest-metadata==3.1.1", "--metadata a b"),
    Row("pytest-order==1.5.0", "--indulgent-ordering"),
    Row("pytest-random-order==1.2.0", "--random-order"),
    Row("pytest-randomly==5.1.0"),
    Row("pytest-repeat==0.9.4", "--count=2"),
    Row("pytest-reportlog==1.0.0", "--report-log=log.json"),
    Row("pytest-rerunfailures==16.7", "--reruns=2", attempts=2),
    # It needs functions, too: pytest says so once the first scenario has failed.
    Row("pytest-retry==1.7.0", "--retries=2", code=3),
    Row("pytest-rich==0.3.0", "--rich"),
    Row("pytest-split==0.11.0", "--splits=1 --group=1"),
    Row("pytest-sugar==1.1.1 termcolor"),
    Row("pytest-timeout==2.4.0", "--timeout=300"),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.packages.partition("==")[0])
def test_each_scenario_has_one_result(row: Row, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(plugins)]
    done = ended([sys.executable, *install, *row.packages.split()], timeout=300)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "session"
    folder.mkdir()
    for name in PASSING:
        shutil.copy(CORE / f"{name}.yaml", folder)
    text = (CORE / f"{FAILING}.yaml").read_text(encoding="utf-8")
    failing = text.replace("count: 2", "count: 1", 1)
    (folder / f"{FAILING}.yaml").write_text(failing, encoding="utf-8")
    options = ["--dra-target", "reference", "--dra-output", "out", "-p", "no:cacheprovider"]
    done = ended(
        [sys.executable, "-m", "pytest", "--rootdir", ".", *options, *row.options.split(), "."],
        timeout=300,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(plugins)},
    )
    assert done.returncode == row.code, done.stdout + done.stderr
    result = load_results(folder / "out/results.ndjson")
    outcomes = {item.scenario.name: str(item.outcome) for item in result.scenarios}
    assert outcomes == row.outcomes, done.stdout
    attempts = {item.scenario.name: len(item.attempts) for item in result.finished}
    assert attempts.get(FAILING, 0) == row.attempts
