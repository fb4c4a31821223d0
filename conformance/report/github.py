"""Annotations of a GitHub job: what did not pass, shown at the file and line that decided.

Written to standard output as workflow commands (GitHub's documentation, "Workflow commands"), where
``GITHUB_ACTIONS`` is ``true``, as GitHub sets it. GitHub shows ten errors of a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console

from conformance.engine.events.dispatch import Event
from conformance.engine.events.result import RunCollector, RunResult, ScenarioResult
from conformance.engine.events.run import RunFinished
from conformance.redaction import redact
from conformance.text import shorten, visible

MAX_ANNOTATIONS = 10
"""GitHub's limit for one level in one step; the last one counts those that are left out."""


def in_github(env: Mapping[str, str]) -> bool:
    return env.get("GITHUB_ACTIONS") == "true"


class GithubAnnotations:
    """Annotates when the run is over; only files below ``workspace`` are named."""

    def __init__(self, console: Console, workspace: Path | None = None) -> None:
        self._console = console
        self._workspace = (workspace or Path.cwd()).resolve()
        self._collector = RunCollector()

    def __str__(self) -> str:
        return "the annotations"

    def handle(self, event: Event) -> None:
        self._collector.handle(event)
        if isinstance(event, RunFinished) and self._collector.run is not None:
            for line in workflow_commands(self._collector.result(), self._workspace):
                self._console.print(line, soft_wrap=True, markup=False, highlight=False)


def workflow_commands(result: RunResult, workspace: Path) -> Iterator[str]:
    """A workflow command for each scenario that did not pass, known issues as notices."""
    for level, rows in (
        ("error", [row for row in result.scenarios if row.bad and not row.known]),
        ("notice", [row for row in result.scenarios if row.known]),
    ):
        shown = rows if len(rows) <= MAX_ANNOTATIONS else rows[: MAX_ANNOTATIONS - 1]
        for row in shown:
            yield _command(level, row, workspace)
        if rows[len(shown) :]:
            more = f"{len(rows) - len(shown)} more; the reports name them all"
            yield f"::{level} title=dra-conformance::{more}"


def _command(level: str, row: ScenarioResult, workspace: Path) -> str:
    scenario, finished = row.scenario, row.finished
    message = row.reasons
    if finished is not None:
        message = "\n".join([*map(str, finished.known_issues), message])
    properties = {"title": f"{row.outcome}: {scenario.id}"}
    where, _, line = (finished.where if finished else "").rpartition(":")
    file = Path(where or scenario.file).resolve()
    if file.is_relative_to(workspace):
        number = line if line.isdecimal() else str(scenario.line)
        properties |= {"file": str(file.relative_to(workspace)), "line": number}
    listed = ",".join(
        f"{key}={_data(value).replace(':', '%3A').replace(',', '%2C')}"
        for key, value in properties.items()
    )
    return f"::{level} {listed}::{_data(shorten(message or str(row.outcome), 20, 2_000))}"


def _data(text: str) -> str:
    """A message: one line, and nothing in it is a command."""
    shown = visible(redact(text)).replace("%", "%25")
    return shown.replace("\r", "%0D").replace("\n", "%0A")
