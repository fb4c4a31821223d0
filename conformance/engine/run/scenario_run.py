"""Run one scenario against one target: prepare, steps, diagnostics, cleanup, verdict."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

from conformance.engine.objects.ledger import Ledger
from conformance.engine.run.context import Context
from conformance.engine.run.ending import (
    EXPLANATION,
    Ending,
    diagnose,
    ended_after,
    ended_by,
    interferences,
    is_known,
    may_be_chance,
)
from conformance.engine.run.faults import (
    PUBLISHED_SECONDS,
    make_healthy,
    remove_other_driver,
    restart,
    restore,
    start_other_driver,
    unpublished,
)
from conformance.engine.run.steps import Observed, perform_together, prepare
from conformance.engine.schedule.loop import Slot
from conformance.engine.schedule.needs import last_disruption
from conformance.engine.setup import Setup, planned, without_steps
from conformance.results.events.dispatch import Event
from conformance.results.events.run import RunStopping
from conformance.results.events.scenario import (
    Attempt,
    Diagnostics,
    Outcome,
    ScenarioFinished,
    ScenarioStarted,
    StepFinished,
    StepStarted,
)
from conformance.results.knownissues import versions_of_kubernetes, with_known_issues
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.steps import group_parallel_steps
from conformance.seam.overlaps import Overlap
from conformance.seam.values import CONSTRAINTS
from kube.base.errors import TargetGoneError, UsageError
from kube.base.text import shorten

_LOG = logging.getLogger(__name__)

Emit = Callable[[Event], None]


def run_scenario(
    loaded: LoadedScenario, setup: Setup, emit: Emit, slot: Slot | None = None
) -> ScenarioFinished:
    """Run a scenario to its end, with retries and cleanup; whatever goes wrong is its outcome.

    ``slot``: the scenario's, where others run beside it.
    """
    slot = slot or Slot()
    attempts: list[Attempt] = []
    while True:
        this = replace(setup, attempt=len(attempts))
        _LOG.info("%s: attempt %d begins", loaded.id, this.attempt + 1)
        emit(ScenarioStarted(planned(loaded), this.namespace(loaded)))
        finished = _Run(loaded, this, emit, slot).finish()
        if len(attempts) == setup.retries or not may_be_chance(finished, setup):
            break
        attempts.append(
            Attempt(finished.outcome, finished.message, finished.where, finished.seconds)
        )
    finished = ended_after(finished, attempts)
    report_end(finished, setup, emit)
    return finished


def report_end(finished: ScenarioFinished, setup: Setup, emit: Emit) -> None:
    if setup.compare is not None:
        emit(setup.compare(finished))
    emit(finished)


class _Run:
    """One attempt at a scenario."""

    def __init__(self, loaded: LoadedScenario, setup: Setup, emit: Emit, slot: Slot) -> None:
        self.loaded = loaded
        self.slot = slot
        self.setup = setup
        self.opened = setup.opened
        self.emit = emit
        self.ending = Ending(loaded.locate(()))
        self.steps: list[StepFinished] = []
        self.decisions: list[dict[str, object]] = []
        self.left: tuple[str, ...] = ()
        self.cleanup = Outcome.SKIPPED
        self.overlapped: set[tuple[str, str, str, int]] = set()

    def finish(self) -> ScenarioFinished:
        if (reason := self.setup.reason_to_skip(self.loaded)) is not None:
            return without_steps(self.loaded, Outcome.SKIPPED, reason)
        if (reason := self.setup.reason_to_end(self.loaded)) is not None:
            return without_steps(self.loaded, Outcome.ERROR, reason)
        start = time.perf_counter()
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        variables = self.setup.variables(self.loaded)
        try:
            scenario = self.loaded.bind(variables)
        except UsageError as error:
            return without_steps(self.loaded, *ended_by(error))
        scope = self.opened.target.scope(self.setup.namespace(self.loaded))
        pool, options = self.setup.pool, self.opened.options
        context = Context(
            scenario=scenario,
            scope=scope,
            ledger=Ledger(
                scope,
                self.setup.labels(self.loaded),
                ranges=CONSTRAINTS in self.opened.capabilities.served_apis,
                nodes=pool.nodes if pool and scenario.spec.tier != "allocation" else (),
                scheduler=self.opened.scheduler.name if self.opened.scheduler else "",
            ),
            variables=variables,
            profile=self.opened.profile,
            other=self.opened.other,
            node=pool.nodes[0] if pool and pool.reserved else None,
            # While churn goes on, too much changes to know what the scheduler saw when it decided.
            record=options.record and not any(step.churn for step in scenario.spec.steps),
            churn_seconds=options.churn_time,
            churn_seed=options.churn_seed,
            stop=self.setup.stop,
            slot=self.slot,
            time_factor=self.setup.time_factor,
        )
        try:
            for phase in (
                self._carry_out,
                self._take_decisions,
                self._note_overlaps,
                self._diagnose,
                restore,
                self._find_lost,
                make_healthy,
                self._settle,
                self._clean_up,
                remove_other_driver,
                self._settle,
            ):
                self._guarded(partial(phase, context))
            overlaps = self._note_overlaps(context)  # the watch of claims is complete by now
        finally:
            scope.close()
        finished = replace(
            without_steps(self.loaded, self.ending.outcome, self.ending.message),
            where=self.ending.where,
            cleanup=self.cleanup,
            left=self.left,
            seconds=time.perf_counter() - start,
            steps=tuple(self.steps),
            decisions=tuple(self.decisions),
            undecided=tuple(context.progress.undecided),
            overlaps=overlaps,
            namespace=scope.namespace,
            started_at=started_at,
            latencies=tuple(round(one, 4) for one in scope.latencies()),
        )
        versions = versions_of_kubernetes(self.setup.capabilities)
        return with_known_issues(finished, self.opened.target.name, versions)

    def _carry_out(self, context: Context) -> None:
        spec = context.scenario.spec
        if spec.requires.other_devices:
            start_other_driver(context, self.opened.capabilities)
        prepare(context)
        for indices in group_parallel_steps(spec.steps):
            if not self._steps(indices, context):
                return
            if last_disruption(spec) in indices and not unpublished(context):
                self._settle(context)

    def _take_decisions(self, context: Context) -> None:
        if context.record and self.ending.outcome in {Outcome.PASSED, Outcome.FAILED}:
            self.decisions += map(asdict, context.scope.decisions())

    def _note_overlaps(self, context: Context) -> tuple[Overlap, ...]:
        """Fail the scenario in which one device went to two claims."""
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
        if self.ending.outcome is Outcome.FAILED:
            self.ending.excuse(interferences(context, self.ending.message))
        if self.ending.outcome in {Outcome.FAILED, Outcome.ERROR}:
            diagnostics = {**diagnose(context.scope), **context.progress.kept}
            self.emit(Diagnostics(self.loaded.id, self._named(diagnostics)))
            why = diagnostics.get(EXPLANATION)
            if why is not None and self.ending.outcome is Outcome.FAILED:
                self.ending.add("claims without allocation: " + shorten(why.strip(), 4, 1_000))

    def _find_lost(self, context: Context) -> None:
        """Fail the scenario after whose faults the driver does not publish again."""
        if nodes := unpublished(context, PUBLISHED_SECONDS):
            left, report = restart(nodes, context, self.setup.capabilities)
            self.setup.lost.update(dict.fromkeys(left, self.loaded.id))
            passed = self.ending.well
            self.ending.blame(report)
            if passed:
                self._diagnose(context)

    def _settle(self, context: Context) -> None:
        """Let others begin when all runs as before, unless a retry may disrupt them again."""
        if not self.setup.retries and not context.progress.other_driver:
            context.progress.stopped.clear()
            self.slot.settle()

    def _clean_up(self, context: Context) -> None:
        ledger = context.ledger
        if not ledger.made:
            return
        with self.slot.observe():
            self.left = ledger.cleanup(context.limit(context.scenario.spec.timeouts.cleanup))
        self.cleanup = Outcome.FAILED if self.left else Outcome.PASSED
        if isinstance(ledger.unanswered, TargetGoneError):
            self._stop(ledger.unanswered)
        if self.left and self.ending.well:
            outcome = Outcome.ERROR if ledger.unanswered else Outcome.FAILED
            self.ending.note(outcome, f"the cleanup failed: {'; '.join(self.left)}")

    def _named(self, diagnostics: dict[str, str]) -> dict[str, str]:
        attempt = f"attempt-{self.setup.attempt + 1}-" if self.setup.retries else ""
        return {f"{attempt}{name}": text for name, text in diagnostics.items()}

    def _steps(self, indices: Sequence[int], context: Context) -> bool:
        """Carry out one step, or several in parallel; whether all went well."""
        start = time.perf_counter()
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
        where = self.loaded.locate(("spec", "steps", index))
        ok = self._guarded(lambda: observed.extend(action()), where)
        finished = StepFinished(
            scenario=self.loaded.id,
            index=index,
            title=context.variables.make_canonical(name),
            outcome=Outcome.PASSED if ok else self.ending.latest[0],
            message="" if ok else self.ending.latest[1],
            seconds=time.perf_counter() - start,
            observed=tuple(observed),
        )
        self.steps.append(finished)
        self.emit(finished)
        return ok

    def _guarded(self, action: Callable[[], object], where: str = "") -> bool:
        """Whether an action raises nothing; what it raises is noted as the scenario's outcome."""
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
        if not self.setup.stop.is_set():
            self.setup.stop.set()
            self.emit(RunStopping(str(error).splitlines()[0]))
