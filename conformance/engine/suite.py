"""Run a set of scenarios: header, scenarios (in parallel where they may), final look, footer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from conformance import __version__
from conformance.digest import document_digest, set_digest
from conformance.engine.classes import ensure_classes
from conformance.engine.dispatch import Dispatcher
from conformance.engine.events import (
    Outcome,
    Reporter,
    RunFinished,
    RunStarted,
    RunStopping,
    ScenarioFinished,
    count,
)
from conformance.engine.ledger import Ledger
from conformance.engine.order import longest_first
from conformance.engine.places import Place, Places
from conformance.engine.requirements import fits_beside
from conformance.engine.result import RunCollector, RunResult
from conformance.engine.scenario_run import (
    Setup,
    check_bindings,
    planned,
    report_end,
    run_scenario,
)
from conformance.errors import TargetGoneError, UsageError
from conformance.redaction import redact_json
from conformance.scenario.loader import LoadedScenario
from conformance.targets.base import RUN_LABEL, ApiError, Ref, Scope, TargetError
from conformance.targets.recorded import recorded_options

CLASSES_GONE = 90.0
"""Seconds until the DeviceClasses that the run made for the driver must be gone."""

LOOKING_ON = 4
"""How many scenarios of a cluster may look on (places.py) beside those that act. Each has some
threads and watches; with fewer, places stay empty where many scenarios hold still for long."""

NAMESPACES_MARKED = 30.0
"""Seconds until every namespace of a run must be on its way out; all of them are empty by then."""


def run_suite(
    scenarios: Sequence[LoadedScenario],
    setup: Setup,
    reporters: Sequence[Reporter],
    *,
    workers: int = 1,
    options: Mapping[str, Any] | None = None,
) -> RunResult:
    """Run scenarios against the target of ``setup`` and tell the reporters.

    Args:
        workers: how many scenarios may act at once; on a cluster those that only look on, or are
            cleaned up, are not counted. Scenarios of the node tier share the devices of the
            target: together they never need more than there are.
        options: what the user asked for, for the header of the result file.

    Whatever happens meanwhile, what the run made is removed before this returns or raises: the
    work is done in a thread of its own, where Ctrl-C reaches nothing half-way.

    Raises:
        UsageError: there is nothing to run, or a scenario's variables do not resolve.
        ReportError: a reporter failed; the run was ended early, and cleaned up.
        InfrastructureError: the classes of the driver could not be provided.
    """
    if not scenarios:
        raise UsageError("no scenario matches what was asked for; see `dra-conformance list`")
    if workers < 1:
        raise UsageError(f"the number of parallel scenarios must be at least 1, not {workers}")
    check_bindings(list(scenarios), setup)
    collector = RunCollector()
    dispatcher = Dispatcher([collector, *reporters], setup.stop)
    suite = _Suite(scenarios, setup, dispatcher, collector, workers)
    with ThreadPoolExecutor(1, thread_name_prefix="run") as pool:
        try:
            run = pool.submit(suite.run, options or {})
        except KeyboardInterrupt:  # it may have begun; leaving the pool waits for its cleanup
            setup.stop.set()
            raise
        while True:
            try:
                if wait([run], timeout=1.0).done:
                    return run.result()
            except KeyboardInterrupt:
                suite.interrupt()


@dataclass
class _Suite:
    scenarios: Sequence[LoadedScenario]
    setup: Setup
    dispatcher: Dispatcher
    collector: RunCollector
    workers: int
    finished: dict[str, ScenarioFinished] = field(default_factory=dict)
    _running: tuple[str, ...] = ()

    def run(self, options: Mapping[str, Any]) -> RunResult:
        start = time.perf_counter()
        self.dispatcher.dispatch(
            header(self.scenarios, self.setup, {"workers": self.workers, **options})
        )
        self.dispatcher.check()  # nothing was made yet
        left, terminating = self._work()
        for loaded in self.scenarios:
            if loaded.id not in self.finished:
                self._end(loaded, Outcome.LOST, "the run ended before it began")
        ordered = tuple(self.finished[loaded.id] for loaded in self.scenarios)
        interrupted = self.setup.stop.is_set()
        self.dispatcher.dispatch(
            RunFinished(
                run=self.setup.run,
                counts=count(ordered),
                finished_at=_now(),
                seconds=time.perf_counter() - start,
                interrupted=interrupted,
                left=left,
                terminating=terminating,
            )
        )
        self.dispatcher.check(_became_of(ordered, left))
        return replace(self.collector.result(), finished=ordered)

    def interrupt(self) -> None:
        """Start no more scenarios, let those that run clean up, and say so at once."""
        self.setup.stop.set()
        self.dispatcher.dispatch(RunStopping("interrupted", self._running))

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
                if self.setup.opened.profile is not None and self._uses_driver():
                    ensure_classes(self.setup.opened.profile, scope, ledger)
                self._all()
            finally:
                left = ledger.cleanup(CLASSES_GONE)
            owned, terminating = self._last_look(scope)
        finally:
            scope.close()
        return left + owned, terminating

    def _all(self) -> None:
        """Start whatever fits, whenever a place is free; end early when the user says so."""
        real = self.setup.opened.options.target == "cluster"
        most = self.workers + (LOOKING_ON if real else 0)
        pending = longest_first(self.scenarios) if real else list(self.scenarios)
        running: dict[Future[ScenarioFinished], LoadedScenario] = {}
        places = Places(self.workers)
        with ThreadPoolExecutor(most, thread_name_prefix="scenario") as pool:
            while running or (pending and not self.setup.stop.is_set()):
                places.moved.clear()
                for future in [run for run in running if run.done()]:
                    self._take(running.pop(future), future)
                while (
                    len(running) < most
                    and (index := self._next(pending, list(running.values()))) is not None
                    and (place := places.take()) is not None
                ):
                    loaded = pending.pop(index)
                    run = pool.submit(self._run, loaded, place)
                    running[run] = loaded
                    run.add_done_callback(lambda _: places.moved.set())
                self._running = tuple(item.id for item in running.values())
                places.moved.wait(1.0 if running else 0)

    def _run(self, loaded: LoadedScenario, place: Place) -> ScenarioFinished:
        try:
            return run_scenario(loaded, self.setup, self.dispatcher.dispatch, place)
        finally:
            place.leave()

    def _take(self, loaded: LoadedScenario, future: Future[ScenarioFinished]) -> None:
        try:
            self.finished[loaded.id] = future.result()
        except Exception as error:  # noqa: BLE001 -- the other scenarios must still clean up
            self._end(loaded, Outcome.ERROR, f"the suite failed: {type(error).__name__}: {error}")

    def _next(self, pending: list[LoadedScenario], running: list[LoadedScenario]) -> int | None:
        if self.setup.stop.is_set():
            return None
        for index, loaded in enumerate(pending):
            if fits_beside(loaded, running, self.setup.opened.capabilities):
                return index
        return None

    def _uses_driver(self) -> bool:
        return any(loaded.scenario.spec.tier != "allocation" for loaded in self.scenarios)

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

    def _last_look(self, scope: Scope) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Look for anything at all that carries the run's label.

        A namespace was seen to be empty before it was marked for deletion and after; the cluster
        then takes its time (kube-controller-manager: 5 s, ``namespaceDeletionGracePeriod``).

        Returns:
            What is left, and the namespaces that are on their way out.
        """
        names = {
            self.setup.namespace(loaded)
            for loaded in self.scenarios
            if loaded.id in self.finished
            and self.finished[loaded.id].outcome is not Outcome.SKIPPED
        }

        def terminating() -> list[Ref] | None:
            refs = [Ref("v1", "Namespace", name) for name in sorted(names)]
            there = [(ref, obj) for ref in refs if (obj := scope.get(ref)) is not None]
            marked = [ref for ref, obj in there if obj["metadata"].get("deletionTimestamp")]
            return marked if len(marked) == len(there) else None

        try:
            try:
                going = scope.wait(terminating, NAMESPACES_MARKED) or []
            except TargetGoneError:  # a part of it; the API server may still answer
                going = terminating() or []
            owned = self.setup.opened.target.owned(self.setup.run)
            others = (ref for ref in owned if ref.kind == "Namespace" and ref not in going)
            found = [(ref, scope.get(ref)) for ref in others]  # made by a step
            going += [ref for ref, obj in found if obj and "deletionTimestamp" in obj["metadata"]]
        except TargetGoneError:
            label = f"{RUN_LABEL}={self.setup.run}"
            return (f"perhaps all objects labelled {label}: the cluster does not answer",), ()
        except (ApiError, TargetError) as error:
            return (f"what the run made could not be looked for: {error}",), ()
        left = tuple(str(ref) for ref in owned if ref not in going)
        return left, tuple(ref.name for ref in going if ref in owned)


def header(
    scenarios: Sequence[LoadedScenario], setup: Setup, options: Mapping[str, Any]
) -> RunStarted:
    """What a run begins with: what was planned, against what.

    Args:
        options: what the user asked for beside the target, for the result file.
    """
    capabilities, profile = setup.opened.capabilities, setup.opened.profile
    document = redact_json(profile.model_dump(mode="json", by_alias=True)) if profile else None
    return RunStarted(
        run=setup.run,
        target=setup.opened.target.name,
        planned=tuple(planned(loaded) for loaded in scenarios),
        kubernetes_version=capabilities.kubernetes_version,
        driver=capabilities.driver,
        simulated=capabilities.simulated,
        versions=dict(sorted(capabilities.versions.items())),
        suite_version=__version__,
        scenario_set_digest=set_digest(scenarios),
        started_at=_now(),
        feature_gates=dict(sorted(capabilities.feature_gates.items())),
        driver_profile=document,
        driver_profile_digest=None if document is None else document_digest(document),
        image=setup.opened.image,
        compared=setup.opened.options.record,
        options={**recorded_options(setup.opened.options), **options},
    )


def _became_of(finished: Sequence[ScenarioFinished], left: Sequence[str]) -> str:
    """What became of a run whose reporter failed, for the message."""
    lost = sum(item.outcome is Outcome.LOST for item in finished)
    early = (
        f"the run was ended early, {lost} of {len(finished)} scenarios lost, and " if lost else ""
    )
    if left:
        return f"{early}left behind: {', '.join(left)}; run `dra-conformance cleanup`"
    return f"{early}what the run made was removed"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
