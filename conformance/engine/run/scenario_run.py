"""Run one scenario against one target: prepare, steps, diagnostics, cleanup, verdict."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

from conformance.engine.attempt import ScenarioAttempt
from conformance.engine.lost_driver import (
    PUBLISHED_SECONDS,
    await_publication,
    restart_lost_driver,
)
from conformance.engine.objects.ledger import Ledger
from conformance.engine.run.account import AccountKeeper
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
    make_healthy,
    remove_other_driver,
    restore,
    start_other_driver,
)
from conformance.engine.run.steps import perform_together, prepare
from conformance.engine.run.verbs import Observed
from conformance.engine.schedule.loop import Slot
from conformance.engine.schedule.needs import last_disruption
from conformance.engine.schedule.pools import NodePool
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
from conformance.scenario.driver.variables import Variables
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Scenario
from conformance.scenario.steps import group_parallel_steps
from conformance.seam.overlaps import Overlap
from conformance.seam.scope import Scope
from conformance.seam.values import CONSTRAINTS
from kube.base.errors import TargetGoneError, UsageError
from kube.base.text import shorten

_LOG = logging.getLogger(__name__)

Emit = Callable[[Event], None]


def run_scenario(
    loaded: LoadedScenario,
    setup: Setup,
    emit: Emit,
    slot: Slot | None = None,
    pool: NodePool | None = None,
) -> ScenarioFinished:
    """Run a scenario to its end, with retries and cleanup; whatever goes wrong is its outcome.

    Args:
        slot: the scenario's, where others run beside it.
        pool: the nodes on which it runs; None is all of the target.
    """
    slot = slot or Slot()
    attempts: list[Attempt] = []
    while True:
        attempt = ScenarioAttempt(setup, loaded, pool, number=len(attempts))
        _LOG.info("%s: attempt %d begins", loaded.id, attempt.number + 1)
        emit(ScenarioStarted(planned(loaded), attempt.namespace))
        finished = _Run(attempt, emit, slot).finish()
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

    def __init__(self, attempt: ScenarioAttempt, emit: Emit, slot: Slot) -> None:
        self.attempt = attempt
        self.loaded = attempt.loaded
        self.slot = slot
        self.setup = attempt.setup
        self.opened = attempt.setup.opened
        self.emit = emit
        self.ending = Ending(self.loaded.locate(()))
        self.steps: list[StepFinished] = []
        self.decisions: list[dict[str, object]] = []
        self.left: tuple[str, ...] = ()
        self.cleanup = Outcome.SKIPPED
        self.overlapped: set[tuple[str, str, str, int]] = set()
        self.keeper: AccountKeeper | None = None

    def finish(self) -> ScenarioFinished:
        """Run the attempt to its end, unless there is a reason not to begin it."""
        if (reason := self.attempt.explain_skip()) is not None:
            return without_steps(self.loaded, Outcome.SKIPPED, reason)
        if (reason := self.attempt.explain_useless()) is not None:
            return without_steps(self.loaded, Outcome.ERROR, reason)
        start = time.perf_counter()
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        variables = self.attempt.make_variables()
        try:
            scenario = self.loaded.bind(variables)
        except UsageError as error:
            return without_steps(self.loaded, *ended_by(error))
        scope = self.opened.target.scope(self.attempt.namespace)
        context = self._make_context(scenario, variables, scope)
        # While churn goes on, what is said depends on how far everybody happens to be.
        if scenario.spec.tier != "allocation" and not any(s.churn for s in scenario.spec.steps):
            nodes = self.attempt.capabilities.nodes
            self.keeper = AccountKeeper(scope, nodes, variables.make_canonical)
        try:
            self._go_through_phases(context)
            # Once more: what the watch of claims told during the cleanup is there by now.
            overlaps = self._note_overlaps(context)
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
            latencies=tuple(round(seconds, 4) for seconds in scope.latencies()),
            account=self.keeper.finish() if self.keeper else None,
        )
        versions = versions_of_kubernetes(self.attempt.capabilities)
        return with_known_issues(finished, self.opened.target.name, versions)

    def _make_context(self, scenario: Scenario, variables: Variables, scope: Scope) -> Context:
        pool, options = self.attempt.pool, self.opened.options
        return Context(
            scenario=scenario,
            scope=scope,
            ledger=Ledger(
                scope,
                self.attempt.labels,
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

    def _go_through_phases(self, context: Context) -> None:
        """Carry out the steps, and all that must follow however they ended.

        A phase that raises is noted and does not keep the later ones from being carried out, as if
        each were the ``finally`` of those above it. The order is the design: first what can be seen
        only now, then the cluster as it was, then away with what the scenario made.
        """
        phases: tuple[Callable[[Context], object], ...] = (
            self._carry_out,
            #
            # See: nothing may be repaired or deleted yet, or there is nothing to look at.
            #
            # Before the diagnosis, which may make an error of a failure (`Ending.excuse`): an error
            # has no decisions, and those of a failure are wanted.
            self._take_decisions,
            # Before the diagnosis, as it may be what makes the scenario fail.
            self._note_overlaps,
            # What the suite itself does from here on, and how pods end by it, is no part of it.
            self._take_account,
            self._diagnose,
            #
            # Repair: what follows, and every other scenario, needs components that run.
            #
            restore,
            # A driver cannot publish before it and its kubelet run again.
            self._find_lost,
            # Shows in slices, so it needs a driver that publishes.
            make_healthy,
            # From here all runs as before, and the cleanup disrupts nobody: others need not wait.
            self._settle,
            #
            # Remove: only now, as pods end and claims are unprepared by kubelets and drivers that
            # run.
            #
            self._clean_up,
            # Not before the last pod that had its devices is gone: it must unprepare their claims.
            remove_other_driver,
            # Again, for the first is none while another driver is on the nodes.
            self._settle,
        )
        for phase in phases:
            self._guarded(partial(phase, context))

    def _carry_out(self, context: Context) -> None:
        """Carry out the steps until one goes wrong."""
        spec = context.scenario.spec
        if spec.requires.other_devices:
            start_other_driver(context, self.opened.capabilities)
        prepare(context)
        for indices in group_parallel_steps(spec.steps):
            if not self._steps(indices, context):
                return
            # After the last fault, with the driver back, the scenario disrupts nobody any more; the
            # phases at its end must not restart components beside scenarios that have begun.
            if last_disruption(spec) in indices and not await_publication(context):
                self._settle(context)

    def _take_decisions(self, context: Context) -> None:
        if context.record and self.ending.outcome in {Outcome.PASSED, Outcome.FAILED}:
            self.decisions += map(asdict, context.scope.decisions())

    def _note_overlaps(self, context: Context) -> tuple[Overlap, ...]:
        """Fail the scenario in which one device went to two claims."""
        overlaps = tuple(context.scope.overlaps())
        for item in overlaps:
            key = (item.driver, item.pool, item.device, item.version)
            if item.namespace == context.scope.namespace and key not in self.overlapped:
                self.overlapped.add(key)
                if self.ending.well:
                    self.ending.note(Outcome.FAILED, str(item))
                else:
                    self.ending.add(str(item))
        return overlaps

    def _take_account(self, _: Context) -> None:
        if self.keeper is not None:
            self.keeper.take()

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
        if nodes := await_publication(context, PUBLISHED_SECONDS):
            still_lost, report = restart_lost_driver(nodes, context, self.attempt.capabilities)
            self.setup.lost.add(still_lost, self.loaded.id)
            passed = self.ending.well
            self.ending.blame(report)
            if passed:
                self._diagnose(context)

    def _settle(self, context: Context) -> None:
        """Report that all runs as before, so that scenarios which were kept waiting can begin.

        Not where a retry may disrupt them again, nor while another driver is on the nodes.
        """
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
        prefix = f"attempt-{self.attempt.number + 1}-" if self.setup.retries else ""
        return {f"{prefix}{name}": text for name, text in diagnostics.items()}

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
