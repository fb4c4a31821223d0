"""Run one scenario against one target: prepare, steps, diagnostics, cleanup, verdict."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

from conformance.engine.context import Context
from conformance.engine.disruption import (
    bring_other,
    first_disturbance,
    last_disturbance,
    remove_other,
    restore,
)
from conformance.engine.ending import (
    EXPLANATION,
    Ending,
    diagnose,
    ended_after,
    ended_by,
    is_known,
    may_be_chance,
    with_known_issues,
)
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
from conformance.engine.ledger import Ledger
from conformance.engine.places import Place
from conformance.engine.setup import Setup, planned
from conformance.engine.steps import Observed, perform_together, prepare
from conformance.engine.stimuli import make_healthy
from conformance.errors import TargetGoneError, UsageError
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.steps import together
from conformance.targets.seam.overlaps import Overlap
from conformance.targets.seam.values import CONSTRAINTS
from conformance.text import shorten

_LOG = logging.getLogger(__name__)

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
        _LOG.info("%s: attempt %d begins", loaded.id, this.attempt + 1)
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
        self.steps: list[StepFinished] = []
        self.decisions: list[dict[str, object]] = []
        self.left: tuple[str, ...] = ()
        self.cleanup = Outcome.SKIPPED
        self.overlapped: set[tuple[str, str, str, int]] = set()

    def finish(self) -> ScenarioFinished:
        reason = self.setup.reason_to_skip(self.loaded)
        if reason is not None:
            return self._without_steps(Outcome.SKIPPED, reason)
        start = time.perf_counter()
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        variables = self.setup.variables(self.loaded)
        try:
            scenario = self.loaded.bind(variables)
        except UsageError as error:
            return self._without_steps(*ended_by(error))
        scope = self.opened.target.scope(self.setup.namespace(self.loaded))
        part, options = self.setup.part, self.opened.options
        context = Context(
            scenario=scenario,
            scope=scope,
            ledger=Ledger(
                scope,
                self.setup.labels(self.loaded),
                ranges=CONSTRAINTS in self.opened.capabilities.served_apis,
                nodes=part.nodes if part and scenario.spec.tier != "allocation" else (),
            ),
            variables=variables,
            profile=self.opened.profile,
            other=self.opened.other,
            node=part.nodes[0] if part and part.kept else None,
            # While churn goes on, too much changes to know what the scheduler saw when it decided.
            record=options.record and not any(step.churn for step in scenario.spec.steps),
            churn_seconds=options.churn_time,
            churn_seed=options.churn_seed,
            stop=self.setup.stop,
            place=self.place,
            time_factor=self.setup.time_factor,
        )
        try:
            for part_of_it in (
                self._carry_out,
                self._take_decisions,
                self._note_overlaps,
                self._diagnose,
                restore,
                make_healthy,
                self._calm_down,
                self._clean_up,
                remove_other,
                self._calm_down,
            ):
                self._guarded(partial(part_of_it, context))
            overlaps = self._note_overlaps(context)  # the watch of claims has brought all by now
        finally:
            scope.close()
        finished = replace(
            self._without_steps(self.ending.outcome, self.ending.message),
            cleanup=self.cleanup,
            left=self.left,
            seconds=time.perf_counter() - start - self.place.waited,
            steps=tuple(self.steps),
            decisions=tuple(self.decisions),
            undecided=tuple(context.progress.undecided),
            overlaps=overlaps,
            namespace=scope.namespace,
            started_at=started_at,
        )
        version = self.opened.capabilities.kubernetes_version
        return with_known_issues(finished, self.opened.target.name, version)

    def _carry_out(self, context: Context) -> None:
        """Make what the scenario has from the start, and carry out its steps until one fails."""
        spec = context.scenario.spec
        if spec.requires.other_devices:
            self.place.disturb()
            context.check()
            bring_other(context, self.opened.capabilities)
        prepare(context)
        for indices in together(spec.steps):
            if first_disturbance(spec.steps) in indices:
                self.place.disturb()
                context.check()
            if not self._steps(indices, context):
                return
            if last_disturbance(spec) in indices:
                self._calm_down(context)

    def _take_decisions(self, context: Context) -> None:
        if context.record and self.ending.outcome in {Outcome.PASSED, Outcome.FAILED}:
            self.decisions += map(asdict, context.scope.decisions())

    def _note_overlaps(self, context: Context) -> tuple[Overlap, ...]:
        """Fail the scenario in which one device went to two claims, whatever else it saw."""
        found = tuple(context.scope.overlaps())
        for item in found:
            key = (item.driver, item.pool, item.device, item.version)
            if item.namespace == context.scope.namespace and key not in self.overlapped:
                self.overlapped.add(key)
                if self.ending.well:
                    self.ending.note(Outcome.FAILED, str(item))
                else:
                    self.ending.add(str(item))
        return found

    def _diagnose(self, context: Context) -> None:
        if self.ending.outcome in {Outcome.FAILED, Outcome.ERROR}:
            diagnostics = {**diagnose(context.scope), **context.progress.kept}
            self.emit(Diagnostics(self.loaded.id, self._named(diagnostics)))
            why = diagnostics.get(EXPLANATION)
            if why is not None and self.ending.outcome is Outcome.FAILED:
                self.ending.add("claims without allocation: " + shorten(why.strip(), 4, 1_000))

    def _calm_down(self, context: Context) -> None:
        """All that was stopped runs; others may come, unless the scenario may be tried again."""
        if not self.setup.retries and not context.progress.brought:
            context.progress.stopped.clear()
            self.place.calm_down()

    def _clean_up(self, context: Context) -> None:
        self.place.leave()
        ledger = context.ledger
        if not ledger.made:
            return
        self.left = ledger.cleanup(context.limit(context.scenario.spec.timeouts.cleanup))
        self.cleanup = Outcome.FAILED if self.left else Outcome.PASSED
        if isinstance(ledger.unanswered, TargetGoneError):
            self._stop(ledger.unanswered)
        if self.left and self.ending.well:
            outcome = Outcome.ERROR if ledger.unanswered else Outcome.FAILED
            self.ending.note(outcome, f"the cleanup failed: {'; '.join(self.left)}")

    def _named(self, diagnostics: dict[str, str]) -> dict[str, str]:
        """With the attempt in their names, where there may be several."""
        attempt = f"attempt-{self.setup.attempt + 1}-" if self.setup.retries else ""
        return {f"{attempt}{name}": text for name, text in diagnostics.items()}

    def _steps(self, indices: Sequence[int], context: Context) -> bool:
        """Carry out one step, or several at the same time; whether all went well."""
        start = time.perf_counter() - self.place.waited
        steps = context.scenario.spec.steps
        actions = perform_together([steps[index] for index in indices], context)
        pairs = zip(indices, actions, strict=True)
        went_well = [self._step(index, context, start, action) for index, action in pairs]
        return all(went_well)

    def _step(
        self, index: int, context: Context, start: float, action: Callable[[], Observed]
    ) -> bool:
        name = context.scenario.spec.steps[index].describe()
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

    def _without_steps(self, outcome: Outcome, message: str) -> ScenarioFinished:
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
