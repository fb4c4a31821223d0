"""Run a set of scenarios: header, scenarios (in parallel where they may), final look, footer."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from conformance import __version__
from conformance.engine.classes import ensure_classes
from conformance.engine.events import (
    Event,
    Outcome,
    Reporter,
    RunFinished,
    RunStarted,
    ScenarioFinished,
    count,
)
from conformance.engine.ledger import Ledger
from conformance.engine.scenario_run import Setup, check_bindings, planned, run_scenario
from conformance.errors import UsageError
from conformance.scenario.loader import LoadedScenario, set_digest
from conformance.targets.base import RUN_LABEL, Ref, Scope

CLASSES_GONE = 90.0
"""Seconds until the DeviceClasses that the run made for the driver must be gone."""

NAMESPACES_MARKED = 30.0
"""Seconds until every namespace of a run must be on its way out; all of them are empty by then."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """All scenarios of a run, in the order of their ids.

    Attributes:
        left: what the run made and what is still there.
    """

    finished: tuple[ScenarioFinished, ...]
    interrupted: bool
    left: tuple[str, ...]


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
        workers: how many scenarios may run at once. Scenarios of the node tier share the devices
            of the target: together they never need more than there are.
        options: what the user asked for, for the header of the result file.

    Raises:
        UsageError: there is nothing to run, or a scenario's variables do not resolve.
    """
    if not scenarios:
        raise UsageError("no scenario matches what was asked for; see `dra-conformance list`")
    if workers < 1:
        raise UsageError(f"the number of parallel scenarios must be at least 1, not {workers}")
    check_bindings(list(scenarios), setup)
    return _Suite(scenarios, setup, reporters, workers).run(options or {})


@dataclass
class _Suite:
    scenarios: Sequence[LoadedScenario]
    setup: Setup
    reporters: Sequence[Reporter]
    workers: int
    finished: dict[str, ScenarioFinished] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, options: Mapping[str, Any]) -> RunResult:
        start = time.perf_counter()
        self.emit(self._header(options))
        scope = self.setup.target.scope(f"dra-{self.setup.run}")
        ledger = Ledger(scope, {RUN_LABEL: self.setup.run})
        try:
            if self.setup.profile is not None and self._uses_driver():
                ensure_classes(self.setup.profile, scope, ledger)
            self._all()
            left = ledger.cleanup(CLASSES_GONE)
            owned, terminating = self._last_look(scope)
            left += owned
        finally:
            scope.close()
        for loaded in self.scenarios:
            if loaded.id not in self.finished:
                self._lose(loaded)
        ordered = tuple(self.finished[loaded.id] for loaded in self.scenarios)
        interrupted = self.setup.stop.is_set()
        self.emit(
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
        return RunResult(ordered, interrupted, left)

    def emit(self, event: Event) -> None:
        with self._lock:
            for reporter in self.reporters:
                reporter.handle(event)

    def _all(self) -> None:
        """Start whatever fits, whenever a place is free; end early when the user says so."""
        pending = list(self.scenarios)
        running: dict[Future[ScenarioFinished], LoadedScenario] = {}
        with ThreadPoolExecutor(self.workers, thread_name_prefix="scenario") as pool:
            while running or (pending and not self.setup.stop.is_set()):
                try:
                    while (index := self._next(pending, list(running.values()))) is not None:
                        loaded = pending.pop(index)
                        running[pool.submit(run_scenario, loaded, self.setup, self.emit)] = loaded
                    done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                except KeyboardInterrupt:
                    self.setup.stop.set()
                    continue
                for future in done:
                    loaded = running.pop(future)
                    self.finished[loaded.id] = future.result()

    def _next(self, pending: list[LoadedScenario], running: list[LoadedScenario]) -> int | None:
        if self.setup.stop.is_set() or len(running) >= self.workers:
            return None
        for index, loaded in enumerate(pending):
            if fits_beside(loaded, running, self.setup.capabilities.devices):
                return index
        return None

    def _uses_driver(self) -> bool:
        return any(loaded.scenario.spec.tier != "allocation" for loaded in self.scenarios)

    def _lose(self, loaded: LoadedScenario) -> None:
        lost = ScenarioFinished(
            scenario=planned(loaded),
            outcome=Outcome.LOST,
            message="the run was interrupted before it began",
            where=loaded.where(()),
            cleanup=Outcome.SKIPPED,
            left=(),
            seconds=0.0,
            waited=0.0,
            steps=(),
        )
        self.finished[loaded.id] = lost
        self.emit(lost)

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

        going = scope.wait(terminating, NAMESPACES_MARKED) or []
        owned = self.setup.target.owned(self.setup.run)
        left = tuple(str(ref) for ref in owned if ref not in going)
        return left, tuple(ref.name for ref in going if ref in owned)

    def _header(self, options: Mapping[str, Any]) -> RunStarted:
        capabilities = self.setup.capabilities
        return RunStarted(
            run=self.setup.run,
            target=self.setup.target.name,
            planned=tuple(planned(loaded) for loaded in self.scenarios),
            kubernetes_version=capabilities.kubernetes_version,
            driver=capabilities.driver,
            simulated=capabilities.simulated,
            versions=dict(capabilities.versions),
            suite_version=__version__,
            scenario_set_digest=set_digest(self.scenarios),
            started_at=_now(),
            options=dict(options),
        )


def fits_beside(loaded: LoadedScenario, running: Sequence[LoadedScenario], devices: int) -> bool:
    """Whether a scenario may run beside others, given how many devices there are in all.

    A scenario that disturbs components runs alone.
    """
    if not running:
        return True
    if any(_disturbs(item) for item in [loaded, *running]):
        return False
    sharing = [item.scenario.spec for item in running if item.scenario.spec.tier != "allocation"]
    spec = loaded.scenario.spec
    if spec.tier == "allocation" or not sharing:
        return True
    if spec.requires.exclusive or any(other.requires.exclusive for other in sharing):
        return False
    return spec.requires.devices + sum(other.requires.devices for other in sharing) <= devices


def _disturbs(loaded: LoadedScenario) -> bool:
    return any(step.fault is not None for step in loaded.scenario.spec.steps)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
