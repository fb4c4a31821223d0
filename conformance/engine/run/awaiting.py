"""Waits until an expectation holds, or checks that it holds for as long as it must.

A pod that does not start is not waited for blindly: its events may say that it never will
(:mod:`conformance.engine.run.refusals`).
"""

from __future__ import annotations

import logging
import math
from contextlib import nullcontext
from typing import Any, Final

from conformance.engine.run.attempt import ScenarioAttempt
from conformance.engine.run.ending import Divergence
from conformance.engine.run.refusals import ask_again, troubles
from conformance.scenario.expectations.base import Evaluation, Expectation, Timed
from kube.values import Obj
from reference_allocator.features import Features

_LOG = logging.getLogger(__name__)

ASK_AGAIN_SECONDS = 5.0
"""How often the events of a pod that does not start are read."""

BUSY_SECONDS: Final = 5.0
"""After so long a wait a scenario has nothing to do until something happens: another may act."""

FINAL_SECONDS: Final = 10.0
"""For how long an answer that stays as it is may differ from claims and slices: these arrive by
watches."""

NEVER_ASKED: Final = Evaluation(False, "nothing: the target never let the check run", {})


def await_expectation(expectation: Expectation, attempt: ScenarioAttempt) -> dict[str, Any]:
    """Wait until an expectation holds, or check that it holds all the time.

    Returns what was observed, comparable between targets.

    Raises:
        Divergence: it does not hold.
        TargetError: the target broke.
    """
    if not isinstance(expectation, Timed):
        observation = expectation.evaluate(attempt)
        if not observation.holds:
            raise Divergence(expectation.describe(), observation.finding)
        return dict(observation.observed)
    if expectation.consistently is not None:
        return _check_held(expectation, expectation.consistently, attempt)
    observed = _await_holding(expectation, attempt)
    if expectation.must_stay:
        _check_held(expectation, attempt.scenario.spec.timeouts.consistently, attempt)
        _note_undecided(expectation.may_want_devices, attempt)
    return observed


def _await_holding(expectation: Timed, attempt: ScenarioAttempt) -> dict[str, Any]:
    timeouts = attempt.scenario.spec.timeouts
    timeout = timeouts.pod_running if expectation.waits_for_start else timeouts.eventually
    if expectation.eventually is not None:
        timeout = expectation.eventually
    timeout = attempt.limit(timeout)
    last, since = NEVER_ASKED, attempt.scope.now()

    def check() -> Evaluation | None:
        nonlocal last, since
        seen = expectation.evaluate(attempt)
        if not seen.final or seen.finding != last.finding:
            since = attempt.scope.now()
        last = seen
        if seen.holds:
            _check_not_too_early(expectation, seen, attempt)
        # What was final once may change until claims and slices have arrived by their watches.
        settled = seen.final and attempt.scope.now() - since >= FINAL_SECONDS
        return seen if seen.holds or settled else None

    awaited = {name for name, _ in expectation.list_scheduled_pods()}
    _LOG.debug(
        "%s: up to %g s for %s", attempt.scenario.metadata.name, timeout, expectation.describe()
    )
    seconds_left, waits_long = timeout, False
    while True:
        # In shares: between them the events of pods that do not start are read.
        longest = ASK_AGAIN_SECONDS if awaited else math.inf if waits_long else BUSY_SECONDS
        share = min(seconds_left, longest)
        with attempt.slot.observe() if waits_long else nullcontext():
            seen = attempt.wait(check, share)
        waits_long = True
        if seen is not None and seen.holds:
            return dict(seen.observed)
        if seen is not None:
            what = f"{last.finding}; given up after {FINAL_SECONDS:g} s, for nothing is asked again"
            raise Divergence(expectation.describe(), what)
        seconds_left -= share
        warnings = troubles(attempt)
        refused = [one for one in warnings if one.refused and one.concerns(awaited)]
        certain = [why for one in refused if (why := one.certain(timeout - seconds_left))]
        if seconds_left <= 0 or certain:
            break
        for one in refused:
            ask_again(one, attempt)
    _note_undecided(expectation.may_want_devices, attempt)
    reasons = [str(one) for one in warnings if one.message not in last.finding][:5]
    early = [f"given up after {timeout - seconds_left:g} s, for {why}" for why in certain[:1]]
    raise Divergence(
        f"{expectation.describe()} within {timeout:g} s",
        "; ".join([last.finding, *reasons, *(early if seconds_left > 0 else [])]),
    )


def _check_not_too_early(expectation: Timed, seen: Evaluation, attempt: ScenarioAttempt) -> None:
    """Raise Divergence if an expectation holds before ``notBefore``.

    Time counts from before the step's request until after the observation, so it is never short.
    """
    if expectation.not_before is None or expectation.since is None:
        return
    passed = attempt.scope.now() - attempt.began_at[expectation.since]
    if passed < expectation.not_before:
        wanted = f"{expectation.describe()} not before {expectation.not_before:g} s"
        raise Divergence(
            f"{wanted} after step {expectation.since}", f"it after {passed:.1f} s: {seen.finding}"
        )


def _check_held(expectation: Timed, duration: float, attempt: ScenarioAttempt) -> dict[str, Any]:
    last = NEVER_ASKED

    def violation() -> Evaluation | None:
        nonlocal last
        last = expectation.evaluate(attempt)
        return None if last.holds else last

    _LOG.debug("%s: %g s of %s", attempt.scenario.metadata.name, duration, expectation.describe())
    with attempt.slot.observe():
        broken = attempt.wait(violation, duration)
    if broken is not None:
        raise Divergence(f"{expectation.describe()}, for {duration:g} s", last.finding)
    return dict(last.observed)


def _note_undecided(pod_name: str | None, attempt: ScenarioAttempt) -> None:
    """Keep the snapshot for which a pod is pending, if it waits for devices only."""
    if pod_name is None or not attempt.record:
        return
    pod: Obj | None = attempt.get("Pod", pod_name)
    if pod is None or pod["spec"].get("nodeName"):
        return
    claims = [
        attempt.claim_of(pod_name, entry["name"]) for entry in pod["spec"].get("resourceClaims", ())
    ]
    present = [claim for claim in claims if claim is not None]
    if not present or len(present) != len(claims):
        return
    snapshot = dict(attempt.scope.snapshot())
    uids = {claim["metadata"]["uid"] for claim in present}
    snapshot["claims"] = [
        claim for claim in snapshot.get("claims", ()) if claim["metadata"]["uid"] in uids
    ]
    if gated := attempt.gated:
        now = {gate: on for gates in gated.values() for gate, on in gates.items()}
        features = Features.from_dict(snapshot["features"])
        snapshot["features"] = features.with_gates(snapshot["kubernetes"], now).to_dict()
    attempt.undecided.append({"pod": pod, "snapshot": snapshot})
