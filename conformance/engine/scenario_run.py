"""Run one scenario against one target: prepare, steps, diagnostics, cleanup, verdict."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from conformance.engine.attempts import ended_after, may_be_chance
from conformance.engine.context import Context
from conformance.engine.diagnosing import EXPLANATION, diagnose
from conformance.engine.disruption import (
    bring_other,
    first_disturbance,
    last_disturbance,
    remove_other,
    restore,
)
from conformance.engine.ending import Ending, ended_by, is_known
from conformance.engine.events import (
    Attempt,
    Diagnostics,
    Event,
    Outcome,
    RunStopping,
    ScenarioFinished,
    ScenarioStarted,
    StepFinished,
    StepStarted,
)
from conformance.engine.knownissues import with_known_issues
from conformance.engine.ledger import Ledger
from conformance.engine.parallel import Observed, perform_together
from conformance.engine.places import Place
from conformance.engine.setup import Setup, planned
from conformance.engine.steps import prepare, title
from conformance.engine.stimuli import make_healthy
from conformance.errors import TargetGoneError
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Step, together
from conformance.targets.base import CONSTRAINTS
from conformance.targets.overlaps import Overlap
from conformance.targets.scope import Scope
from conformance.text import shorten

Emit = Callable[[Event], None]


def run_scenario(
    loaded: LoadedScenario, setup: Setup, emit: Emit, place: Place | None = None
) -> ScenarioFinished:
    """Run a scenario to its end, cleanup included, and say how it ended.

    Args:
        place: the scenario's, where others wait for one; it is left before the cleanup.

    Everything that can go wrong becomes an outcome; nothing is raised but programming errors in
    the suite's own bookkeeping around it.
    """
    place = place or Place()
    attempts: list[Attempt] = []
    while True:
        this = replace(setup, attempt=len(attempts))
        emit(ScenarioStarted(planned(loaded), this.namespace(loaded)))
        finished = _Run(loaded, this, emit, place).finish()
        if len(attempts) == setup.retries or not may_be_chance(finished, setup):
            break
        place.come_back()
        attempts.append(
            Attempt(finished.outcome, finished.message, finished.where, finished.seconds)
        )
    finished = ended_after(finished, attempts)
    report_end(finished, setup, emit)
    return finished


def report_end(finished: ScenarioFinished, setup: Setup, emit: Emit) -> None:
    """Say how a scenario ended; before that, what the comparison says of it."""
    if setup.compare is not None:
        emit(setup.compare(finished))
    emit(finished)


class _Run:
    """The state of one scenario while it runs."""

    def __init__(self, loaded: LoadedScenario, setup: Setup, emit: Emit, place: Place) -> None:
        self.loaded = loaded
        self.place = place
        self.setup = setup
        self.opened = setup.opened
        self.emit = emit
        self.ending = Ending(loaded.where(()))
        self.started_at = ""
        self.steps: list[StepFinished] = []
        self.told: set[tuple[str, str, str, int]] = set()

    def finish(self) -> ScenarioFinished:
        reason = self.setup.reason_to_skip(self.loaded)
        if reason is not None:
            return self._result(Outcome.SKIPPED, reason)
        start = time.perf_counter()
        self.started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        scope = self.opened.target.scope(self.setup.namespace(self.loaded))
        part = self.setup.part
        context = Context(
            scenario=self.loaded.scenario,
            scope=scope,
            ledger=Ledger(
                scope,
                self.setup.labels(self.loaded),
                ranges=CONSTRAINTS in self.opened.capabilities.served_apis,
                nodes=part.nodes if part and self.loaded.scenario.spec.tier != "allocation" else (),
            ),
            variables=self.setup.variables(self.loaded),
            profile=self.opened.profile,
            other=self.opened.other,
            node=part.nodes[0] if part and part.kept else None,
            record=self.opened.options.record and not _churns(self.loaded),
            churn_seconds=self.opened.options.churn_time,
            churn_seed=self.opened.options.churn_seed,
            stop=self.setup.stop,
            place=self.place,
            time_factor=self.setup.time_factor,
        )
        try:
            return self._run(context, start)
        finally:
            scope.close()

    def _run(self, context: Context, start: float) -> ScenarioFinished:
        scope = context.scope
        if self._guarded(lambda: self._prepare(context)):
            for indices in together(context.scenario.spec.steps):
                if first_disturbance(context.scenario.spec.steps) in indices:
                    self.place.disturb()
                    if not self._guarded(context.check):
                        break
                if not self._steps(indices, context):
                    break
                if last_disturbance(context.scenario.spec) in indices:
                    self._calm_down(context)
        decisions: list[dict[str, object]] = []
        if context.record and self.ending.outcome in {Outcome.PASSED, Outcome.FAILED}:
            self._guarded(lambda: decisions.extend(map(asdict, scope.decisions())))
        self._overlaps(scope)
        if self.ending.outcome in {Outcome.FAILED, Outcome.ERROR}:
            diagnostics = {**diagnose(scope), **context.kept}
            self.emit(Diagnostics(self.loaded.id, self._named(diagnostics)))
            why = diagnostics.get(EXPLANATION)
            if why is not None and self.ending.outcome is Outcome.FAILED:
                self.ending.add("claims without allocation: " + shorten(why.strip(), 4, 1_000))
        self._guarded(lambda: restore(context))
        if context.unhealthy:
            self._guarded(lambda: make_healthy(context))
        if not context.brought:
            self._calm_down(context)
        self.place.leave()
        made = bool(context.ledger.made)
        limit = context.limit(context.scenario.spec.timeouts.cleanup)
        left = context.ledger.cleanup(limit) if made else ()
        if context.brought:
            self._guarded(lambda: remove_other(context))
            self._calm_down(context)
        if isinstance(context.ledger.unanswered, TargetGoneError):
            self._stop(context.ledger.unanswered)
        cleanup = Outcome.FAILED if left else Outcome.PASSED if made else Outcome.SKIPPED
        if left and self.ending.well:
            outcome = Outcome.ERROR if context.ledger.unanswered else Outcome.FAILED
            self.ending.note(outcome, f"the cleanup failed: {'; '.join(left)}")
        overlaps = self._overlaps(scope)  # by now the watch of claims has told all of theirs
        finished = ScenarioFinished(
            scenario=planned(self.loaded),
            outcome=self.ending.outcome,
            message=self.ending.message,
            where=self.ending.where,
            cleanup=cleanup,
            left=left,
            seconds=time.perf_counter() - start - self.place.waited,
            steps=tuple(self.steps),
            decisions=tuple(decisions),
            undecided=tuple(context.undecided),
            overlaps=overlaps,
            namespace=scope.namespace,
            started_at=self.started_at,
        )
        version = self.opened.capabilities.kubernetes_version
        return with_known_issues(finished, self.opened.target.name, version)

    def _calm_down(self, context: Context) -> None:
        """All that was stopped runs; others may come, unless the scenario may be tried again."""
        if not self.setup.retries:
            context.stopped.clear()
            self.place.calm_down()

    def _named(self, diagnostics: dict[str, str]) -> dict[str, str]:
        """With the attempt in their names, where there may be several."""
        attempt = f"attempt-{self.setup.attempt + 1}-" if self.setup.retries else ""
        return {f"{attempt}{name}": text for name, text in diagnostics.items()}

    def _overlaps(self, scope: Scope) -> tuple[Overlap, ...]:
        """Fail the scenario in which one device went to two claims, whatever else it saw."""
        found = tuple(scope.overlaps())
        for item in found:
            key = (item.driver, item.pool, item.device, item.version)
            if item.namespace == scope.namespace and key not in self.told:
                self.told.add(key)
                if self.ending.well:
                    self.ending.note(Outcome.FAILED, str(item))
                else:
                    self.ending.add(str(item))
        return found

    def _prepare(self, context: Context) -> None:
        context.scenario = self.loaded.bind(context.variables)
        if self.loaded.scenario.spec.requires.other_devices:
            self.place.disturb()
            context.check()
            bring_other(context, self.opened.capabilities)
        prepare(context)

    def _steps(self, indices: Sequence[int], context: Context) -> bool:
        """Carry out one step, or several at the same time; whether all went well."""
        start = time.perf_counter() - self.place.waited
        steps = context.scenario.spec.steps
        actions = perform_together([steps[index] for index in indices], context)
        told = [
            self._step(index, steps[index], context, start, action)
            for index, action in zip(indices, actions, strict=True)
        ]
        return all(told)

    def _step(
        self,
        index: int,
        step: Step,
        context: Context,
        start: float,
        action: Callable[[], Observed],
    ) -> bool:
        name = title(step)
        self.emit(StepStarted(self.loaded.id, index, name))
        observed: list[dict[str, object]] = []
        where = self.loaded.where(("spec", "steps", index))
        ok = self._guarded(lambda: observed.extend(action()), where)
        finished = StepFinished(
            scenario=self.loaded.id,
            index=index,
            title=context.variables.canonical(name),
            outcome=Outcome.PASSED if ok else self.ending.latest[0],
            message="" if ok else self.ending.latest[1],
            seconds=time.perf_counter() - self.place.waited - start,
            observed=tuple(observed),
        )
        self.steps.append(finished)
        self.emit(finished)
        return ok

    def _guarded(self, action: Callable[[], object], where: str = "") -> bool:
        """Do something; turn whatever is raised into the scenario's outcome."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 -- a bug of the suite must not end the run
            self.ending.note(*ended_by(error), where)
            if isinstance(error, TargetGoneError):
                self._stop(error)
            if not is_known(error):
                trace = {"suite-traceback.txt": traceback.format_exc()}
                self.emit(Diagnostics(self.loaded.id, self._named(trace)))
            return False
        return True

    def _stop(self, error: TargetGoneError) -> None:
        """Nothing else can be run either."""
        if not self.setup.stop.is_set():
            self.setup.stop.set()
            self.emit(RunStopping(str(error).splitlines()[0]))

    def _result(self, outcome: Outcome, message: str) -> ScenarioFinished:
        return ScenarioFinished(
            scenario=planned(self.loaded),
            outcome=outcome,
            message=message,
            where=self.ending.where,
            cleanup=Outcome.SKIPPED,
            left=(),
            seconds=0.0,
            steps=(),
        )


def _churns(loaded: LoadedScenario) -> bool:
    """Whether what the scheduler saw when it decided cannot be told: too much changed meanwhile."""
    return any(step.churn for step in loaded.scenario.spec.steps)
