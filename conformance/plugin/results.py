"""The result file of a pytest session, with what is made from it.

Scenarios run in pytest-xdist's workers, the file is written by the controller: each test's report
carries the events of its scenario as the lines that the file will have. Without xdist both are one
process, and the way is the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from conformance.engine.events.dispatch import Dispatcher, Event, Reporter
from conformance.engine.events.run import RunFinished, ShardPlan
from conformance.engine.events.scenario import PlannedScenario, ScenarioFinished, count
from conformance.engine.header import header, now
from conformance.engine.setup import Setup
from conformance.report.files import DiagnosticsFolder, file_reporters
from conformance.report.folder import DIAGNOSTICS, RESULTS, OutputFolder
from conformance.report.pages import write_pages
from conformance.resultfile.lines import Recorded, from_line, to_line
from conformance.resultfile.write import ResultFile
from conformance.scenario.loader import LoadedScenario


def carried(events: Sequence[Event]) -> list[str]:
    """Events as text that a test's report can carry to another process."""
    return [json.dumps(to_line(event)) for event in events if isinstance(event, Recorded)]


class SessionResults:
    """Writes the result file; as a context, for as long as the session lasts."""

    def __init__(self, path: Path, setup: Setup) -> None:
        self._path = path
        self._setup = setup
        self._stack = ExitStack()
        self._planned: Mapping[str, PlannedScenario] = {}
        self._finished: list[ScenarioFinished] = []
        self._dispatcher: Dispatcher | None = None
        self._start = time.perf_counter()
        self._folder = self._stack.enter_context(OutputFolder(path))

    def plan(
        self,
        scenarios: Sequence[LoadedScenario],
        options: Mapping[str, Any],
        shard: ShardPlan | None = None,
    ) -> None:
        """Write down what is going to run; once, before the first scenario ends."""
        if self._dispatcher is not None:
            return
        file = self._stack.enter_context(closing(ResultFile(self._path / RESULTS)))
        reporters: list[Reporter] = [
            self._folder,
            file,
            *file_reporters(self._path, DiagnosticsFolder(self._path / DIAGNOSTICS)),
        ]
        self._dispatcher = Dispatcher(reporters, self._setup.stop)
        event = header(scenarios, self._setup, options, shard)
        self._planned = {item.id: item for item in event.planned}
        self._dispatcher.dispatch(event)

    def take(self, lines: Sequence[str]) -> None:
        """Record what a test's report carried."""
        assert self._dispatcher is not None, "a test ended before the collection did"
        for line in lines:
            event = from_line(json.loads(line), self._planned)
            if isinstance(event, ScenarioFinished):
                self._finished.append(event)
            self._dispatcher.dispatch(event)

    def finish(self, *, interrupted: bool, left: Sequence[str]) -> None:
        """Complete the file and make the pages. Raises ConformanceError: they cannot be written."""
        with self._stack:
            if self._dispatcher is None:
                return
            self._dispatcher.dispatch(
                RunFinished(
                    run=self._setup.run,
                    counts=count(self._finished),
                    finished_at=now(),
                    seconds=time.perf_counter() - self._start,
                    interrupted=interrupted,
                    left=tuple(left),
                )
            )
            self._dispatcher.check()
        write_pages(self._path)
