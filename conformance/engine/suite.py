"""Run a set of scenarios: header, scenarios (in parallel where they may), final look, footer."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.engine.classes import ensure_classes
from conformance.engine.dispatch import Dispatcher
from conformance.engine.events import (
    Outcome,
    Reporter,
    RunFinished,
    RunStopping,
    ScenarioFinished,
    ShardPlan,
    count,
)
from conformance.engine.header import header, now
from conformance.engine.lastlook import last_look
from conformance.engine.ledger import Ledger
from conformance.engine.neighbours import (
    Neighbour,
    beside,
    let_disturb,
    next_to_begin,
    phase_at_first,
)
from conformance.engine.order import longest_first
from conformance.engine.parts import Belonging, Part
from conformance.engine.places import Place, Places
from conformance.engine.result import RunCollector, RunResult, retold
from conformance.engine.scenario_run import report_end, run_scenario
from conformance.engine.setup import Setup, check_bindings, planned
from conformance.errors import UsageError
from conformance.scenario.loader import LoadedScenario
from conformance.targets.seam.values import RUN_LABEL
from conformance.text import counted

CLASSES_GONE = 90.0
"""Seconds until the DeviceClasses that the run made for the driver must be gone."""

LOOKING_ON = 4
"""How many scenarios of a cluster may look on (places.py) beside those that act. Each has some
threads and watches; with fewer, places stay empty where many scenarios hold still for long."""


def run_suite(
    scenarios: Sequence[LoadedScenario],
    setup: Setup,
    reporters: Sequence[Reporter],
    *,
    workers: int = 1,
    options: Mapping[str, Any] | None = None,
    shard: ShardPlan | None = None,
    max_failures: int = 0,
    timeout: float = 0.0,
    begun: RunResult | None = None,
) -> RunResult:
    """Run scenarios against the target of ``setup`` and tell the reporters.

    Args:
        workers: how many scenarios may act at once; on a cluster those that only look on, or are
            cleaned up, are not counted. Scenarios of the node tier share the devices of the
            target: together they never need more than there are.
        options: what the user asked for, for the header of the result file.
        shard: which part of a plan the scenarios are.
        max_failures: begin no more scenarios once so many have failed; 0 is never.
        timeout: seconds after which the run ends as if it was interrupted; 0 is never.
        begun: what of the run has ended before: its header is the run's, its scenarios are told
            and not run again.

    Whatever happens meanwhile, what the run made is removed before this returns or raises: the
    work is done in a thread of its own, where Ctrl-C reaches nothing half-way.

    Raises:
        UsageError: there is nothing to run, or a scenario's variables do not resolve.
        ReportError: a reporter failed; the run was ended early, and cleaned up.
        InfrastructureError: the classes of the driver could not be provided.
    """
    if not scenarios:
        raise UsageError("no scenario matches; see `dra-conformance list`")
    if workers < 1:
        raise UsageError(f"the number of parallel scenarios must be at least 1, not {workers}")
    check_bindings(list(scenarios), setup)
    collector = RunCollector()
    dispatcher = Dispatcher([collector, *reporters], setup.stop)
    options = {"workers": workers, **(options or {})}
    begun = begun or RunResult(
        run=header(scenarios, setup, options, shard), finished=(), footer=None
    )
    rest = begun.rest(scenarios)
    suite = _Suite(rest, setup, dispatcher, collector, workers, begun, max_failures)
    with ThreadPoolExecutor(1, thread_name_prefix="run") as pool:
        try:
            run = pool.submit(suite.run)
        except KeyboardInterrupt:  # it may have begun; leaving the pool waits for its cleanup
            setup.stop.set()
            raise
        late = time.monotonic() + timeout if timeout else math.inf
        while True:
            try:
                if wait([run], timeout=1.0).done:
                    return run.result()
                if time.monotonic() >= late:
                    late = math.inf
                    suite.interrupt(f"the run took longer than its {timeout:g} s")
            except KeyboardInterrupt:
                suite.interrupt()


@dataclass
class _Suite:
    scenarios: Sequence[LoadedScenario]
    setup: Setup
    dispatcher: Dispatcher
    collector: RunCollector
    workers: int
    begun: RunResult
    max_failures: int = 0
    finished: dict[str, ScenarioFinished] = field(default_factory=dict)
    _running: tuple[str, ...] = ()
    _failures: int = 0

    def run(self) -> RunResult:
        start = time.perf_counter()
        for event in retold(self.begun):
            self.dispatcher.dispatch(event)
        self.dispatcher.check()  # nothing was made yet
        left, terminating = self._work()
        for loaded in self.scenarios:
            if loaded.id not in self.finished:
                self._end(loaded, Outcome.LOST, "the run ended before it began")
        here = tuple(self.finished[loaded.id] for loaded in self.scenarios)
        ordered = (*self.begun.finished, *here)
        before = sum(part.seconds for part in self.begun.run.resumed)
        interrupted = self.setup.stop.is_set()
        self.dispatcher.dispatch(
            RunFinished(
                run=self.setup.run,
                counts=count(ordered),
                finished_at=now(),
                seconds=before + time.perf_counter() - start,
                interrupted=interrupted,
                left=left,
                terminating=terminating,
            )
        )
        self.dispatcher.check(_became_of(ordered, left))
        return replace(self.collector.result(), finished=ordered)

    def interrupt(self, reason: str = "interrupted") -> None:
        """Start no more scenarios, let those that run clean up, and say so at once."""
        self.setup.stop.set()
        self.dispatcher.dispatch(RunStopping(reason, self._running))

    def _work(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """All that is done on the target.

        Returns:
            What is left, in words, and the namespaces that are on their way out.
        """
        scope = self.setup.opened.target.scope(f"dra-{self.setup.run}")
        ledger = Ledger(scope, {RUN_LABEL: self.setup.run})
        left: tuple[str, ...] = ()
        try:
            try:
                for profile in self.setup.profiles(self.scenarios):
                    ensure_classes(profile, scope, ledger)
                self._all()
            finally:
                left = ledger.cleanup(CLASSES_GONE)
            owned, terminating = last_look(scope, self.setup, self._namespaces())
        finally:
            scope.close()
        return left + owned, terminating

    def _all(self) -> None:
        """Start whatever fits, whenever a place is free; end early when the user says so."""
        opened = self.setup.opened
        real = opened.options.target == "cluster"
        # One at a time on the reference: its time is virtual, and one that waits there for what
        # another holds would see the whole of its time pass before that one goes on.
        workers = self.workers if real else 1
        most = workers + (LOOKING_ON if real else 0)
        pending = longest_first(self.scenarios) if real else list(self.scenarios)
        where = Belonging(pending if real else (), opened.capabilities, self._lacks)
        running: dict[Future[ScenarioFinished], Neighbour] = {}
        places = Places(workers)
        with ThreadPoolExecutor(most, thread_name_prefix="scenario") as pool:
            while running or (pending and not self._ends()):
                places.moved.clear()
                for future in [run for run in running if run.done()]:
                    ended = running.pop(future).loaded
                    self._take(ended, future)
                    where.ended(ended)
                let_disturb(running.values())
                while (
                    len(running) < most
                    and (found := self._next(where, pending, running.values())) is not None
                    and (place := places.take(phase_at_first(pending[found[0]]))) is not None
                ):
                    index, part = found
                    loaded = pending.pop(index)
                    run = pool.submit(self._run, loaded, place, part)
                    running[run] = Neighbour(loaded, place, part)
                    run.add_done_callback(lambda _: places.moved.set())
                self._running = tuple(item.loaded.id for item in running.values())
                places.moved.wait(1.0 if running else 0)

    def _run(self, loaded: LoadedScenario, place: Place, part: Part) -> ScenarioFinished:
        setup = replace(self.setup, part=part)
        try:
            return run_scenario(loaded, setup, self.dispatcher.dispatch, place)
        finally:
            place.leave()

    def _take(self, loaded: LoadedScenario, future: Future[ScenarioFinished]) -> None:
        try:
            self.finished[loaded.id] = future.result()
        except Exception as error:  # noqa: BLE001 -- the other scenarios must still clean up
            self._end(loaded, Outcome.ERROR, f"the suite failed: {type(error).__name__}: {error}")
        if not self.max_failures:
            return
        before, rows = self._failures, self.collector.result().scenarios
        self._failures = sum(row.failed for row in rows if row.scenario.id in self.finished)
        if before < self.max_failures <= self._failures:
            said = f"{counted(self._failures, 'scenario')} failed, the limit of --maxfail"
            self.dispatcher.dispatch(RunStopping(said, self._running))

    def _lacks(self, loaded: LoadedScenario, part: Part) -> str | None:
        return replace(self.setup, part=part).reason_to_skip(loaded)

    def _ends(self) -> bool:
        """Whether no more scenarios are begun."""
        enough = 0 < self.max_failures <= self._failures
        return enough or self.setup.stop.is_set()

    def _next(
        self, where: Belonging, pending: Sequence[LoadedScenario], running: Collection[Neighbour]
    ) -> tuple[int, Part] | None:
        """Which of those that wait begins now, the first that may, and in which part."""
        found: dict[int, Part] = {}
        for part in () if self._ends() else where.parts():
            may = [i for i, loaded in enumerate(pending) if where.takes(part, loaded)]
            index = next_to_begin(
                [pending[i] for i in may], beside(part, running), part.capabilities
            )
            if index is not None:
                found[may[index]] = part
        return min(found.items(), key=lambda item: item[0], default=None)

    def _namespaces(self) -> set[str]:
        """Those that scenarios had: of the first attempt at each, and of the last."""
        ran = [
            (loaded, self.finished[loaded.id])
            for loaded in self.scenarios
            if loaded.id in self.finished
            and self.finished[loaded.id].outcome is not Outcome.SKIPPED
        ]
        first = {self.setup.namespace(loaded) for loaded, _ in ran}
        return first | {finished.namespace for _, finished in ran if finished.namespace}

    def _end(self, loaded: LoadedScenario, outcome: Outcome, message: str) -> None:
        """Report a scenario that could not report itself."""
        ended = ScenarioFinished(
            scenario=planned(loaded),
            outcome=outcome,
            message=message,
            where=loaded.where(()),
            cleanup=Outcome.SKIPPED,
            left=(),
            seconds=0.0,
            steps=(),
        )
        self.finished[loaded.id] = ended
        report_end(ended, self.setup, self.dispatcher.dispatch)


def _became_of(finished: Sequence[ScenarioFinished], left: Sequence[str]) -> str:
    """What became of a run whose reporter failed, for the message."""
    lost = sum(item.outcome is Outcome.LOST for item in finished)
    early = (
        f"the run was ended early, {lost} of {len(finished)} scenarios lost, and " if lost else ""
    )
    if left:
        return f"{early}left behind: {', '.join(left)}; run `dra-conformance cleanup`"
    return f"{early}what the run made was removed"
