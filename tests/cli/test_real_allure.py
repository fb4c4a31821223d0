"""The Allure report of a run, built by Allure 3 itself and opened in a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conformance.report.allure import AllureResults
from conformance.results.events.scenario import KnownFailure, Outcome
from tests.programs import ended
from tests.report.builders import finished, planned, play, stream

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "ci/allure/build"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Tree(HTMLParser):
    """The titles of Allure's tree in their order, and the status of each leaf."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.statuses: list[str] = []
        self._kind = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._kind = dict(attrs).get("data-testid") or ""
        if self._kind.startswith("tree-leaf-status-"):
            self.statuses.append(self._kind.removeprefix("tree-leaf-status-"))

    def handle_data(self, data: str) -> None:
        if self._kind in ("tree-section-title", "tree-leaf-title"):
            self.found.append((self._kind.split("-")[1], data))
            self._kind = ""


def build(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return ended([BUILD, *arguments], env={**os.environ, **env}, timeout=600)


def dom(page: Path, profile: Path) -> str:
    """The page as a browser has it once its scripts have run."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    return subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    ).stdout


@pytest.mark.needs_node
def test_allure_shows_suite_feature_and_scenario(tmp_path: Path) -> None:
    scenarios = [
        planned("core/one"),
        planned("core/two"),
        planned("extended/device-taints/three", feature="DeviceTaints"),
        planned("core/known"),
    ]
    issue = KnownFailure("some-issue", "https://example.com/1")
    events = [
        finished(scenarios[0]),
        finished(scenarios[1], Outcome.FAILED, "the message"),
        finished(scenarios[2], Outcome.ERROR, "connection refused"),
        finished(scenarios[3], Outcome.KNOWN, "double", known_issues=(issue,)),
    ]
    results, report = tmp_path / "results", tmp_path / "report"
    play(AllureResults(results), stream(scenarios, events))
    for _ in range(2):
        built = build(results, report)
        assert built.returncode == 0, built.stderr
    assert len((tmp_path / "report.history.jsonl").read_text().splitlines()) == 2
    tree = Tree(dom(report / "index.html", tmp_path / "profile"))
    assert sorted(tree.found) == sorted(
        [
            ("section", "core"),
            ("section", "ResourceClaim"),
            ("leaf", "one"),
            ("leaf", "two"),
            ("leaf", "known"),
            ("section", "extended"),
            ("section", "DeviceTaints"),
            ("leaf", "three"),
        ]
    )
    assert sorted(tree.statuses) == ["broken", "failed", "passed", "skipped"]


def test_a_machine_without_node_is_told_so(tmp_path: Path) -> None:
    for tool in ("bash", "realpath", "dirname", "find"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    told = build(tmp_path / "results", tmp_path / "report", PATH=str(tmp_path))
    assert told.returncode == 2
    assert "needs Node.js 20.19 or newer with npm" in told.stderr
    assert build("--missing", PATH=str(tmp_path)).stdout == "Node.js 20.19 or newer with npm\n"
