"""Run a set of scenarios: header, scenarios (in parallel where they may), final look, footer."""

from __future__ import annotations

import math
import os
import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from conformance.engine.leftovers import last_look
from conformance.engine.objects.classes import ensure_classes
from conformance.engine.objects.ledger import Ledger
from conformance.engine.plan import header, now
from conformance.engine.run.scenario_run import report_end, run_scenario
from conformance.engine.schedule.loop import Schedule, Slot
from conformance.engine.schedule.model import choose_slots
from conformance.engine.schedule.pools import NodePool
from conformance.engine.second import Second
from conformance.engine.setup import Setup, without_steps
from conformance.results.events.dispatch import Dispatcher, Reporter
from conformance.results.events.result import RunCollector, RunResult, retold
from conformance.results.events.run import SECOND_CLUSTER, RunFinished, RunStopping, ShardPlan
from conformance.results.events.scenario import Outcome, ScenarioFinished, count
from conformance.scenario.loader import LoadedScenario
from kube.base.errors import UsageError
from kube.base.text import counted
from kube.nodes import RUN_LABEL

CLASSES_GONE = 90.0
"""Seconds until the DeviceClasses that the run made for the driver must be gone."""


def run_suite(
    scenarios: Sequence[LoadedScenario],
    setup: Setup,
    reporters: Sequence[Reporter],
    *,
    workers: int | None = 1,
    options: Mapping[str, Any] | None = None,
    shard: ShardPlan | None = None,
    max_failures: int = 0,
    timeout: float = 0.0,
    begun: RunResult | None = None,
    second: Second | None = None,
) -> RunResult:
    """Run scenarios against the target of ``setup`` and report to the reporters.

    What the run made is removed before this returns or raises: the work is done in a thread of its
    own, which Ctrl-C does not interrupt.

    Args:
        workers: how many scenarios may act at once; on a cluster one that only observes is not
            counted. None: as many as suit the target.
        options: what the user asked for, for the header of the result file.
        shard: which shard of a plan the scenarios are.
        max_failures: begin no more scenarios after so many failures; 0 is no limit.
        timeout: seconds after which the run is interrupted; 0 is no limit.
        begun: the interrupted run that this one resumes: its header is the run's, and its
            scenarios are reported but not run again.
        second: another cluster, on which some of the scenarios run meanwhile.

    Raises:
        UsageError: there is nothing to run, or a scenario's variables do not resolve.
        ReportError: a reporter failed; the run was ended early, and cleaned up.
        InfrastructureError: the classes of the driver could not be provided.
    """
    if not scenarios:
        raise UsageError("no scenario matches; see `dra-conformance list`")
    if workers is None:
        is_here = setup.opened.options.cluster == "local"
        processors = len(os.sched_getaffinity(0)) if is_here else None
        workers = choose_slots(setup.opened.capabilities, processors)
    if workers < 1:
        raise UsageError(f"the number of parallel scenarios must be at least 1, not {workers}")
    setup.check_bindings(scenarios)
    collector = RunCollector()
    dispatcher = Dispatcher([collector, *reporters], setup.stop)
    elsewhere = {item.id for item in second.scenarios} if second else set()
    if begun is None:
        head = header(scenarios, setup, {"workers": workers, **(options or {})}, shard)
        begun = RunResult(run=head, finished=(), footer=None)
    if elsewhere:  # with those of a run that this one resumes
        listed = elsewhere.union(begun.run.options.get(SECOND_CLUSTER, ()))
        recorded = {**begun.run.options, SECOND_CLUSTER: sorted(listed)}
        begun = replace(begun, run=replace(begun.run, options=recorded))
    suite = _Suite(begun.rest(scenarios), setup, dispatcher, collector, begun, max_failures)
    here = [item for item in suite.scenarios if item.id not in elsewhere]
    suite.add_target(setup, here, workers)
    if second is not None:
        suite.add_target(second.setup, second.scenarios, slots=1)
    with ThreadPoolExecutor(1, thread_name_prefix="run") as pool:
        try:
            run = pool.submit(suite.run)
        except KeyboardInterrupt:  # it may have begun; leaving the pool waits for its cleanup
            setup.stop.set()
            raise
        late = time.monotonic() + timeout if timeout else math.inf
        while True:
            try:
                # Not for as long as it takes: the time limit is looked at in between.
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
    begun: RunResult
    max_failures: int = 0
    finished: dict[str, ScenarioFinished] = field(default_factory=dict)
    _targets: list[_OnTarget] = field(default_factory=list)
    _failures: int = 0
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def add_target(self, setup: Setup, scenarios: Sequence[LoadedScenario], slots: int) -> None:
        """Add a target with what is to run there."""
        capabilities = setup.opened.capabilities
        schedule = Schedule(scenarios, capabilities, slots, setup.explain_skip)
        self._targets.append(_OnTarget(scenarios, setup, schedule))

    def run(self) -> RunResult:
        start = time.perf_counter()
        # A resumed run has one result file: what it did before it was interrupted comes first.
        for event in retold(self.begun):
            self.dispatcher.dispatch(event)
        self.dispatcher.check()  # nothing was made yet
        leftovers, terminating = self._work()
        for loaded in self.scenarios:
            if loaded.id not in self.finished:
                self._end(loaded, Outcome.LOST, "the run ended before it began")
        here = tuple(self.finished[loaded.id] for loaded in self.scenarios)
        ordered = (*self.begun.finished, *here)
        seconds_before = sum(part.seconds for part in self.begun.run.resumed)
        interrupted = self.setup.stop.is_set()
        self.dispatcher.dispatch(
            RunFinished(
                run=self.setup.run,
                counts=count(ordered),
                finished_at=now(),
                seconds=seconds_before + time.perf_counter() - start,
                interrupted=interrupted,
                left=leftovers,
                terminating=terminating,
                memory=self._measure_memory(),
            )
        )
        self.dispatcher.check(_became_of(ordered, leftovers))
        return replace(self.collector.result(), finished=ordered)

    def _measure_memory(self) -> dict[str, int]:
        # ru_maxrss is in KiB (getrusage(2)).
        memory = {"suite": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}
        peaks = [target.setup.opened.target.peak_memory() for target in self._targets]
        if known := [peak for peak in peaks if peak is not None]:
            memory["cluster"] = sum(known)
        return memory

    def interrupt(self, reason: str = "interrupted") -> None:
        """Begin no more scenarios, and let those that run clean up."""
        self.setup.stop.set()
        self.dispatcher.dispatch(RunStopping(reason, self._list_running()))

    def _work(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Run all; what is left, in words, and the namespaces that are still terminating."""
        with ThreadPoolExecutor(len(self._targets), thread_name_prefix="target") as threads:
            ends = [threads.submit(self._work_on, target) for target in self._targets]
        both = [end.result() for end in ends]
        return sum((left for left, _ in both), ()), sum((going for _, going in both), ())

    def _work_on(self, target: _OnTarget) -> tuple[tuple[str, ...], tuple[str, ...]]:
        run = partial(self._run, target.setup)
        try:
            return target.work(run, self._take, self._ends, self.finished)
        except BaseException:
            self.setup.stop.set()  # the run has failed; the other target's scenarios clean up
            raise

    def _run(
        self, setup: Setup, loaded: LoadedScenario, pool: NodePool, slot: Slot
    ) -> ScenarioFinished:
        return run_scenario(loaded, setup, self.dispatcher.dispatch, slot, pool)

    def _take(self, loaded: LoadedScenario, future: Future[ScenarioFinished]) -> None:
        try:
            self.finished[loaded.id] = future.result()
        except Exception as error:  # noqa: BLE001 -- the other scenarios must still clean up
            self._end(loaded, Outcome.ERROR, f"the suite failed: {type(error).__name__}: {error}")
        if not self.max_failures:
            return
        with self._counting:
            failures_before, rows = self._failures, self.collector.result().scenarios
            self._failures = sum(row.failed for row in rows if row.scenario.id in self.finished)
            reached = failures_before < self.max_failures <= self._failures
        if reached:
            reason = f"{counted(self._failures, 'scenario')} failed, the limit of --maxfail"
            self.dispatcher.dispatch(RunStopping(reason, self._list_running()))

    def _ends(self) -> bool:
        enough = 0 < self.max_failures <= self._failures
        return enough or self.setup.stop.is_set()

    def _list_running(self) -> tuple[str, ...]:
        return tuple(name for target in self._targets for name in target.schedule.running)

    def _end(self, loaded: LoadedScenario, outcome: Outcome, message: str) -> None:
        """Report a scenario that could not report itself."""
        self.finished[loaded.id] = without_steps(loaded, outcome, message)
        report_end(self.finished[loaded.id], self.setup, self.dispatcher.dispatch)


@dataclass(frozen=True)
class _OnTarget:
    """The scenarios of a run on one of its targets."""

    scenarios: Sequence[LoadedScenario]
    setup: Setup
    schedule: Schedule

    def work(
        self,
        run: Callable[[LoadedScenario, NodePool, Slot], ScenarioFinished],
        ended: Callable[[LoadedScenario, Future[ScenarioFinished]], None],
        stopping: Callable[[], bool],
        finished: Mapping[str, ScenarioFinished],
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Run all; what is left, in words, and the namespaces that are still terminating.

        Args:
            finished: how those ended that have; ``ended`` adds to it.
        """
        scope = self.setup.opened.target.scope(f"dra-{self.setup.run}")
        ledger = Ledger(scope, {RUN_LABEL: self.setup.run})
        leftovers: tuple[str, ...] = ()
        try:
            try:
                for profile in self.setup.profiles(self.scenarios):
                    ensure_classes(profile, scope, ledger)
                self.schedule.run(run, ended, stopping)
            finally:
                # After the last scenario, whose claims need the classes; also if one raised.
                leftovers = ledger.cleanup(CLASSES_GONE)
            owned, terminating = last_look(scope, self.setup, self._namespaces(finished))
        finally:
            scope.close()
        return leftovers + owned, terminating

    def _namespaces(self, finished: Mapping[str, ScenarioFinished]) -> set[str]:
        """Namespaces of the first attempt at each scenario, and of the last."""
        ran = [
            (loaded, finished[loaded.id])
            for loaded in self.scenarios
            if loaded.id in finished and finished[loaded.id].outcome is not Outcome.SKIPPED
        ]
        # Attempts between them are seen by the run label (`last_look`).
        first = {self.setup.name_namespace(loaded) for loaded, _ in ran}
        return first | {ended.namespace for _, ended in ran if ended.namespace}


def _became_of(finished: Sequence[ScenarioFinished], left: Sequence[str]) -> str:
    """What became of a run whose reporter failed, for the message."""
    lost = sum(item.outcome is Outcome.LOST for item in finished)
    early = (
        f"the run was ended early, {lost} of {len(finished)} scenarios lost, and " if lost else ""
    )
    if left:
        return f"{early}left behind: {', '.join(left)}; run `dra-conformance cleanup`"
    return f"{early}what the run made was removed"
