"""Run one scenario against one target: prepare, steps, diagnostics, cleanup, verdict."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

from conformance.engine.lost_driver import (
    PUBLISHED_SECONDS,
    await_publication,
    restart_lost_driver,
)
from conformance.engine.run.account import AccountKeeper
from conformance.engine.run.attempt import Emit, ScenarioAttempt
from conformance.engine.run.diagnosis import EXPLANATION, diagnose, interferences
from conformance.engine.run.ending import (
    ended_after,
    ended_by,
    is_known,
    may_be_chance,
    new_attempt,
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
from kube.base.errors import TargetGoneError, UsageError
from kube.base.text import shorten

_LOG = logging.getLogger(__name__)


def run_scenario(
    loaded: LoadedScenario,
    setup: Setup,
    emit: Emit,
    slot: Slot | None = None,
    pool: NodePool | None = None,
    *,
    earlier: Sequence[Attempt] = (),
) -> ScenarioFinished:
    """Run a scenario to its end, with retries and cleanup; whatever goes wrong is its outcome.

    Args:
        slot: the scenario's, where others run beside it.
        pool: the nodes on which it runs; None is all of the target.
        earlier: attempts before this call, each of which failed.
    """
    slot = slot or Slot()
    attempts = list(earlier)
    while True:
        number = len(attempts)
        _LOG.info("%s: attempt %d begins", loaded.id, number + 1)
        emit(ScenarioStarted(planned(loaded), setup.name_namespace(loaded, number)))
        finished = _run_attempt(loaded, setup, emit, slot, pool, number)
        retries = number - len(earlier)
        if retries == setup.retries or not may_be_chance(finished, setup):
            break
        attempts.append(new_attempt(finished))
    finished = ended_after(finished, attempts)
    report_end(finished, setup, emit)
    return finished


def report_end(finished: ScenarioFinished, setup: Setup, emit: Emit) -> None:
    if setup.compare is not None:
        emit(setup.compare(finished))
    emit(finished)


def _run_attempt(
    loaded: LoadedScenario,
    setup: Setup,
    emit: Emit,
    slot: Slot,
    pool: NodePool | None,
    number: int,
) -> ScenarioFinished:
    """Run an attempt to its end, unless there is a reason not to begin it."""
    if (reason := setup.explain_skip(loaded, pool)) is not None:
        return without_steps(loaded, Outcome.SKIPPED, reason)
    if (reason := setup.explain_useless(loaded, pool)) is not None:
        return without_steps(loaded, Outcome.ERROR, reason)
    start = time.perf_counter()
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        attempt = ScenarioAttempt.open(setup, loaded, pool, number, slot, emit)
    except UsageError as error:
        return without_steps(loaded, *ended_by(error))
    spec = attempt.scenario.spec
    # While churn goes on, what is said depends on how far everybody happens to be.
    if spec.tier != "allocation" and not any(step.churn for step in spec.steps):
        nodes = setup.select_capabilities(pool).nodes
        attempt.keeper = AccountKeeper(attempt.scope, nodes, attempt.variables.make_canonical)
    try:
        _go_through_phases(attempt)
        # Once more: what the watch of claims told during the cleanup is there by now.
        overlaps = _note_overlaps(attempt)
    finally:
        attempt.scope.close()
    finished = replace(
        without_steps(loaded, attempt.ending.outcome, attempt.ending.message),
        where=attempt.ending.where,
        cleanup=attempt.cleanup,
        left=attempt.leftovers,
        seconds=time.perf_counter() - start,
        steps=tuple(attempt.steps),
        decisions=tuple(attempt.decisions),
        undecided=tuple(attempt.undecided),
        overlaps=overlaps,
        namespace=attempt.scope.namespace,
        started_at=started_at,
        latencies=tuple(round(seconds, 4) for seconds in attempt.scope.latencies()),
        account=attempt.keeper.finish() if attempt.keeper else None,
    )
    versions = versions_of_kubernetes(setup.select_capabilities(pool))
    return with_known_issues(finished, setup.opened.target.name, versions)


def _go_through_phases(attempt: ScenarioAttempt) -> None:
    """Carry out the steps, and all that must follow however they ended.

    A phase that raises is noted and does not keep the later ones from being carried out, as if
    each were the ``finally`` of those above it. The order is the design: first what can be seen
    only now, then the cluster as it was, then away with what the scenario made.
    """
    phases: tuple[Callable[[ScenarioAttempt], object], ...] = (
        _carry_out,
        #
        # See: nothing may be repaired or deleted yet, or there is nothing to look at.
        #
        # Before the diagnosis, which may make an error of a failure (`Ending.excuse`): an error
        # has no decisions, and those of a failure are wanted.
        _take_decisions,
        # Before the diagnosis, as it may be what makes the scenario fail.
        _note_overlaps,
        # What the suite itself does from here on, and how pods end by it, is no part of it.
        _take_account,
        _diagnose,
        #
        # Repair: what follows, and every other scenario, needs components that run.
        #
        restore,
        # A driver cannot publish before it and its kubelet run again.
        _find_lost,
        # Shows in slices, so it needs a driver that publishes.
        make_healthy,
        # From here all runs as before, and the cleanup disrupts nobody: others need not wait.
        _settle,
        #
        # Remove: only now, as pods end and claims are unprepared by kubelets and drivers that
        # run.
        #
        _clean_up,
        # Not before the last pod that had its devices is gone: it must unprepare their claims.
        remove_other_driver,
        # Again, for the first is none while another driver is on the nodes.
        _settle,
    )
    for phase in phases:
        _note_errors(partial(phase, attempt), attempt)


def _carry_out(attempt: ScenarioAttempt) -> None:
    """Carry out the steps until one goes wrong."""
    spec = attempt.scenario.spec
    if spec.requires.other_devices:
        start_other_driver(attempt, attempt.setup.opened.capabilities)
    prepare(attempt)
    for indices in group_parallel_steps(spec.steps):
        if not _perform_steps(indices, attempt):
            return
        # After the last fault, with the driver back, the scenario disrupts nobody any more; the
        # phases at its end must not restart components beside scenarios that have begun.
        if last_disruption(spec) in indices and not await_publication(attempt):
            _settle(attempt)


def _take_decisions(attempt: ScenarioAttempt) -> None:
    if attempt.record and attempt.ending.outcome in {Outcome.PASSED, Outcome.FAILED}:
        attempt.decisions += map(asdict, attempt.scope.decisions())


def _note_overlaps(attempt: ScenarioAttempt) -> tuple[Overlap, ...]:
    """Fail the scenario in which one device went to two claims."""
    overlaps = tuple(attempt.scope.overlaps())
    for item in overlaps:
        key = (item.driver, item.pool, item.device, item.version)
        if item.namespace == attempt.scope.namespace and key not in attempt.noted_overlaps:
            attempt.noted_overlaps.add(key)
            if attempt.ending.well:
                attempt.ending.note(Outcome.FAILED, str(item))
            else:
                attempt.ending.add(str(item))
    return overlaps


def _take_account(attempt: ScenarioAttempt) -> None:
    if attempt.keeper is not None:
        attempt.keeper.take()


def _diagnose(attempt: ScenarioAttempt) -> None:
    if attempt.ending.outcome is Outcome.FAILED:
        attempt.ending.excuse(interferences(attempt, attempt.ending.message))
    if attempt.ending.outcome in {Outcome.FAILED, Outcome.ERROR}:
        diagnostics = {**diagnose(attempt.scope), **attempt.diagnostics}
        attempt.emit(Diagnostics(attempt.loaded.id, _name_diagnostics(diagnostics, attempt)))
        why = diagnostics.get(EXPLANATION)
        if why is not None and attempt.ending.outcome is Outcome.FAILED:
            attempt.ending.add("claims without allocation: " + shorten(why.strip(), 4, 1_000))


def _find_lost(attempt: ScenarioAttempt) -> None:
    """Fail the scenario after whose faults the driver does not publish again."""
    if nodes := await_publication(attempt, PUBLISHED_SECONDS):
        still_lost, report = restart_lost_driver(
            nodes, attempt, attempt.setup.select_capabilities(attempt.pool)
        )
        attempt.setup.lost.add(still_lost, attempt.loaded.id)
        passed = attempt.ending.well
        attempt.ending.blame(report)
        if passed:
            _diagnose(attempt)


def _settle(attempt: ScenarioAttempt) -> None:
    """Report that all runs as before, so that scenarios which were kept waiting can begin.

    Not where a retry may disrupt them again, nor while another driver is on the nodes.
    """
    if not attempt.setup.retries and not attempt.other_driver_runs:
        attempt.stopped_components.clear()
        attempt.slot.settle()


def _clean_up(attempt: ScenarioAttempt) -> None:
    ledger = attempt.ledger
    if not ledger.made:
        return
    with attempt.slot.observe():
        attempt.leftovers = ledger.cleanup(attempt.limit(attempt.scenario.spec.timeouts.cleanup))
    attempt.cleanup = Outcome.FAILED if attempt.leftovers else Outcome.PASSED
    if isinstance(ledger.unanswered, TargetGoneError):
        _stop_run(ledger.unanswered, attempt)
    if attempt.leftovers and attempt.ending.well:
        outcome = Outcome.ERROR if ledger.unanswered else Outcome.FAILED
        attempt.ending.note(outcome, f"the cleanup failed: {'; '.join(attempt.leftovers)}")


def _name_diagnostics(diagnostics: dict[str, str], attempt: ScenarioAttempt) -> dict[str, str]:
    prefix = f"attempt-{attempt.number + 1}-" if attempt.setup.retries else ""
    return {f"{prefix}{name}": text for name, text in diagnostics.items()}


def _perform_steps(indices: Sequence[int], attempt: ScenarioAttempt) -> bool:
    """Carry out one step, or several in parallel; whether all went well."""
    start = time.perf_counter()
    steps = attempt.scenario.spec.steps
    actions = perform_together([steps[index] for index in indices], attempt)
    pairs = zip(indices, actions, strict=True)
    went_well = [_perform_step(index, attempt, start, action) for index, action in pairs]
    return all(went_well)


def _perform_step(
    index: int, attempt: ScenarioAttempt, start: float, action: Callable[[], Observed]
) -> bool:
    name = attempt.scenario.spec.steps[index].describe()
    attempt.emit(StepStarted(attempt.loaded.id, index, name))
    observed: list[dict[str, object]] = []
    where = attempt.loaded.locate(("spec", "steps", index))
    ok = _note_errors(lambda: observed.extend(action()), attempt, where)
    finished = StepFinished(
        scenario=attempt.loaded.id,
        index=index,
        title=attempt.variables.make_canonical(name),
        outcome=Outcome.PASSED if ok else attempt.ending.latest[0],
        message="" if ok else attempt.ending.latest[1],
        seconds=time.perf_counter() - start,
        observed=tuple(observed),
    )
    attempt.steps.append(finished)
    attempt.emit(finished)
    return ok


def _note_errors(action: Callable[[], object], attempt: ScenarioAttempt, where: str = "") -> bool:
    """Return whether an action raises nothing; an error is noted as the scenario's outcome."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 -- a bug of the suite must not end the run
        attempt.ending.note(*ended_by(error), where)
        if isinstance(error, TargetGoneError):
            _stop_run(error, attempt)
        if not is_known(error):
            trace = {"suite-traceback.txt": traceback.format_exc()}
            attempt.emit(Diagnostics(attempt.loaded.id, _name_diagnostics(trace, attempt)))
        return False
    return True


def _stop_run(error: TargetGoneError, attempt: ScenarioAttempt) -> None:
    if not attempt.setup.stop.is_set():
        attempt.setup.stop.set()
        attempt.emit(RunStopping(str(error).splitlines()[0]))
