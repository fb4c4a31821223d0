"""Evaluate an expectation until it holds, or for as long as it must hold."""

from __future__ import annotations

from typing import Any

from conformance.engine.checks.devices import (
    check_cdi,
    check_devices,
    check_environment,
    describe_devices,
)
from conformance.engine.checks.objects import (
    check_event,
    check_none,
    check_object,
    check_objects,
    describe_selector,
    expressions,
)
from conformance.engine.checks.pods import check_pod, describe_pod
from conformance.engine.context import Context, Seen
from conformance.engine.failures import Divergence
from conformance.scenario.expectations import (
    CdiExpectation,
    DevicesExpectation,
    EnvironmentExpectation,
    EventExpectation,
    Expectation,
    NoneExpectation,
    ObjectExpectation,
    ObjectsExpectation,
    PodExpectation,
    RejectedExpectation,
)
from conformance.targets.base import ApiError, Obj

NEVER_ASKED = Seen(False, "nothing: the target never let the check run", {})


def fulfil(expectation: Expectation, context: Context) -> dict[str, Any]:
    """Wait until an expectation holds (or see that it holds all the time).

    Returns:
        What was observed, in a form that can be compared between targets.

    Raises:
        Divergence: it does not hold.
        TargetError: the target broke.
    """
    if isinstance(expectation, RejectedExpectation):
        return _rejected(expectation, context)
    if expectation.consistently is not None:
        return _hold(expectation, expectation.consistently, context)
    observed = _eventually(expectation, context)
    if isinstance(expectation, PodExpectation) and expectation.pending is not None:
        # A scheduler that is about to try again would say the same for a moment.
        _hold(expectation, context.scenario.spec.timeouts.consistently, context)
        if context.record:
            _note_undecided(expectation.pod, context)
    return observed


def describe(expectation: Expectation) -> str:
    """The expectation in a line, for step titles and failure messages."""
    match expectation:
        case PodExpectation():
            return describe_pod(expectation)
        case ObjectExpectation():
            cel = " and ".join(expressions(expectation.cel))
            return f"{describe_selector(expectation.object)}" + (f" with {cel}" if cel else "")
        case ObjectsExpectation():
            number = "" if expectation.count is None else f"{expectation.count} x "
            return f"{number}{describe_selector(expectation.objects)}"
        case NoneExpectation():
            return f"no {describe_selector(expectation.none)}"
        case DevicesExpectation():
            return describe_devices(expectation.devices)
        case EnvironmentExpectation():
            seen_by = ", ".join(expectation.environment.seen_by)
            return f"{seen_by} with the environment of {expectation.environment.config}"
        case EventExpectation():
            return f"event {expectation.event.reason} about {expectation.event.name}"
        case CdiExpectation():
            state = "a" if expectation.cdi.present else "no"
            return f"{state} CDI spec for claim {expectation.cdi.claim} of {expectation.cdi.pod}"
        case RejectedExpectation():
            rejected = expectation.rejected
            return f"{rejected.object.get('kind')} rejected: {rejected.message or rejected.reason}"


def evaluate(expectation: Expectation, context: Context) -> Seen:
    """Evaluate an expectation once, now."""
    match expectation:
        case PodExpectation():
            return check_pod(expectation, context)
        case ObjectExpectation():
            return check_object(expectation, context)
        case ObjectsExpectation():
            return check_objects(expectation, context)
        case NoneExpectation():
            return check_none(expectation, context)
        case DevicesExpectation():
            return check_devices(expectation, context)
        case EnvironmentExpectation():
            return check_environment(expectation, context)
        case EventExpectation():
            return check_event(expectation, context)
        case CdiExpectation():
            return check_cdi(expectation, context)
    raise AssertionError(f"no check for {type(expectation).__name__}")


def _eventually(expectation: Expectation, context: Context) -> dict[str, Any]:
    timeout = _timeout(expectation, context)
    last = NEVER_ASKED

    def check() -> Seen | None:
        nonlocal last
        last = evaluate(expectation, context)
        return last if last.holds else None

    seen = context.scope.wait(check, timeout)
    if seen is None:
        if context.record and isinstance(expectation, PodExpectation):
            _note_undecided(expectation.pod, context)
        raise Divergence(f"{describe(expectation)} within {timeout:g} s", last.found)
    return dict(seen.observed)


def _hold(expectation: Expectation, duration: float, context: Context) -> dict[str, Any]:
    last = NEVER_ASKED

    def violation() -> Seen | None:
        nonlocal last
        last = evaluate(expectation, context)
        return None if last.holds else last

    if context.scope.wait(violation, duration) is not None:
        raise Divergence(f"{describe(expectation)}, for {duration:g} s", last.found)
    return dict(last.observed)


def _timeout(expectation: Expectation, context: Context) -> float:
    timeouts = context.scenario.spec.timeouts
    own = getattr(expectation, "eventually", None)
    if own is not None:
        return float(own)
    starts = isinstance(expectation, DevicesExpectation | EnvironmentExpectation) or (
        isinstance(expectation, PodExpectation) and expectation.phase not in {None, "Pending"}
    )
    return timeouts.pod_running if starts else timeouts.eventually


def _rejected(expectation: RejectedExpectation, context: Context) -> dict[str, Any]:
    wanted = expectation.rejected
    title = describe(expectation)
    try:
        made = context.ledger.create(wanted.object)
    except ApiError as error:
        wrong = []
        if wanted.code is not None and error.code != wanted.code:
            wrong.append(f"code {error.code}")
        if wanted.reason is not None and error.reason != wanted.reason:
            wrong.append(f"reason {error.reason}")
        causes = [cause for cause in error.causes if wanted.field in {None, cause.field}]
        if wanted.field is not None and not causes:
            fields = ", ".join(cause.field for cause in error.causes) or "no field"
            wrong.append(f"it names {fields}")
        texts = [error.message, *(cause.message for cause in causes)]
        if wanted.message is not None and not any(wanted.message in text for text in texts):
            wrong.append("another message")
        if wrong:
            raise Divergence(title, f"{', '.join(wrong)}: {error.message}") from None
        return {
            "rejected": wanted.object.get("kind"),
            "code": error.code,
            "reason": error.reason,
            "fields": sorted({cause.field for cause in error.causes}),
        }
    raise Divergence(title, f"it was accepted as {made['metadata'].get('name')}")


def _note_undecided(pod_name: str, context: Context) -> None:
    """Keep the snapshot from which a pod could not be served, if it waits for devices only."""
    pod: Obj | None = context.get("Pod", pod_name)
    if pod is None or pod["spec"].get("nodeName"):
        return
    claims = [
        context.claim_of(pod_name, entry["name"]) for entry in pod["spec"].get("resourceClaims", ())
    ]
    present = [claim for claim in claims if claim is not None]
    if not present or len(present) != len(claims):
        return
    snapshot = dict(context.scope.snapshot())
    uids = {claim["metadata"]["uid"] for claim in present}
    snapshot["claims"] = [
        claim for claim in snapshot.get("claims", ()) if claim["metadata"]["uid"] in uids
    ]
    context.undecided.append({"pod": pod, "snapshot": snapshot})
