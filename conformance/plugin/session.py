"""What the items of one pytest process share: the options, and the target once it is open.

With pytest-xdist the controller opens a cluster once and the workers connect to it; the in-process
reference is opened by each worker for itself. The controller alone writes the result file: each
test's report carries the events of its scenario as the lines that the file will have.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conformance.engine.objects.classes import ensure_classes
from conformance.engine.objects.ledger import Ledger
from conformance.engine.options import RunOptions
from conformance.engine.plan import header, now
from conformance.engine.setup import Setup
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.dispatch import Dispatcher, Event, Reporter
from conformance.results.events.run import RunFinished, ShardPlan
from conformance.results.events.scenario import PlannedScenario, ScenarioFinished, count
from conformance.results.write import Recorded, ResultFile, from_line, to_line
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import Selection
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import attach_target, open_reference
from kube.base.errors import InfrastructureError, UsageError
from kube.nodes import RUN_LABEL
from localkube.base import ClusterAccess

FINAL = (ScenarioCompared, ScenarioFinished)
"""The events of a scenario's end, which there is one of, whatever was tried before."""


def serialize_events(events: Sequence[Event]) -> list[str]:
    """Write events as text that a test's report can carry to another process."""
    return [json.dumps(to_line(event)) for event in events if isinstance(event, Recorded)]


class SessionResults:
    """Writes the result file; as a context, for as long as the session lasts."""

    def __init__(self, path: Path, setup: Setup) -> None:
        # Reports are imported where there is one: xdist's workers write none, and start sooner.
        from conformance.report.folder import OutputFolder

        self._path = path
        self._setup = setup
        self._stack = ExitStack()
        self._planned: Mapping[str, PlannedScenario] = {}
        self._finished: list[ScenarioFinished] = []
        self._repeated: set[str] = set()
        self._dispatcher: Dispatcher | None = None
        self._start = time.perf_counter()
        self._folder = self._stack.enter_context(OutputFolder(path))

    def begin(
        self,
        scenarios: Sequence[LoadedScenario],
        options: Mapping[str, Any],
        shard: ShardPlan | None = None,
    ) -> None:
        """Write down what is going to run; once, before the first scenario ends."""
        if self._dispatcher is not None:
            return
        from conformance.report.files import DiagnosticsFolder, file_reporters
        from conformance.report.folder import DIAGNOSTICS, RESULTS

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

    def take_lines(self, lines: Sequence[str], *, runs_again: bool = False) -> None:
        """Record the events of a test, as :func:`serialize_events` wrote them.

        ``runs_again``: it failed, and a plugin has it run once more, whose end knows this attempt.
        """
        assert self._dispatcher is not None, "a test ended before the collection did"
        events = [from_line(json.loads(line), self._planned) for line in lines]
        ended = {event.scenario.id for event in events if isinstance(event, ScenarioFinished)}
        if repeated := ended & {event.scenario.id for event in self._finished}:
            self._repeated |= repeated
            return
        for event in events:
            if runs_again and isinstance(event, FINAL):
                continue
            if isinstance(event, ScenarioFinished):
                self._finished.append(event)
            self._dispatcher.dispatch(event)

    def finish(self, *, interrupted: bool, left: Sequence[str]) -> None:
        """Complete the file and make the pages. Raises ConformanceError: they cannot be written."""
        from conformance.report.pages import write_pages

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
        if self._repeated:
            raise UsageError(
                f"{', '.join(sorted(self._repeated))}: run again after the end, by another plugin;"
                " the result file has the first result of each. To try again what fails, use"
                " --dra-retries or pytest-rerunfailures"
            )


@dataclass
class Session:
    """The session of one process."""

    options: TargetOptions
    selection: Selection
    run: str
    worker: str = ""
    access: ClusterAccess | None = None
    run_options: RunOptions = field(default_factory=RunOptions)
    stack: ExitStack = field(default_factory=ExitStack)
    setup: Setup | None = None
    results: SessionResults | None = None
    shard: ShardPlan | None = None


SESSION = pytest.StashKey[Session]()


def open_setup(session: Session) -> Setup:
    """Return the setup of this process; the first call opens its target."""
    if session.setup is None:
        with ExitStack() as stack:
            if session.access is not None:
                opened = stack.enter_context(attach_target(session.access, session.options))
            else:
                opened = stack.enter_context(open_reference(session.options))
            run_options = session.run_options
            setup = Setup(
                session.run,
                opened,
                worker=session.worker,
                retries=run_options.retries,
                time_factor=run_options.time_factor,
            )
            if session.access is None:  # otherwise the controller has provided them
                stack.enter_context(provide_classes(setup))
            session.stack.enter_context(stack.pop_all())
        session.setup = setup
    return session.setup


@contextmanager
def provide_classes(setup: Setup) -> Iterator[None]:
    """Keep the driver's DeviceClasses in the cluster while the context lasts."""
    scope = setup.opened.target.scope(f"dra-{setup.run}")
    ledger = Ledger(scope, {RUN_LABEL: setup.run})
    try:
        for profile in (setup.opened.profile, setup.opened.other):
            if profile is not None:
                ensure_classes(profile, scope, ledger)
        yield
    finally:
        leftovers = ledger.cleanup(60.0)
        scope.close()
        if leftovers:
            raise InfrastructureError("; ".join(leftovers))


def lock_file(run: str) -> Path:
    """Return a file that is the same for the controller of a run and its workers."""
    return Path(tempfile.gettempdir()) / f"dra-conformance-{os.getuid()}-{run}"
