"""Waits until an expectation holds, or checks that it holds for as long as it must.

Pods do not start for what their events say. After a failed NodePrepareResources a kubelet retries
only at its resync interval, a minute or more (the failure is no error of the sync of the pod,
pkg/kubelet/kuberuntime), or when the pod changes. So the pod is given an annotation; and a driver
that repeats the same answer, or stays away for longer than a kubelet waits for one, is believed
(docs/decisions/0025-a-refused-preparation.md).
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.engine.run.context import Context
from conformance.scenario.expectations.base import Evaluation, Expectation, Timed
from kube.base.redaction import redact_log
from kube.base.text import one_line
from kube.errors import ApiError
from kube.values import Obj, Query, Ref
from reference_allocator.features import Features

ASK_AGAIN_SECONDS = 5.0
CERTAIN_TIMES = 6
CERTAIN_SECONDS = 25.0
"""How often and for how long the driver must refuse in the same words to be believed."""

ANNOTATION = "dra-conformance.dev/refused"

AWAY_TIMES = 7
AWAY_SECONDS = 30.0
"""How often and for how long a driver must not be registered. A kubelet deletes the slices of a
driver that went away after the same time (defaultWipingDelay in pkg/kubelet/cm/dra)."""

_ANSWERS = (
    "NodePrepareResources failed for ResourceClaim ",
    "NodePrepareResources returned result for unknown claim UID ",
    "NodePrepareResources skipped ",
)
"""How a kubelet quotes the driver's answer (pkg/kubelet/cm/dra/manager.go)."""

_AWAY = re.compile(r"DRA driver (\S+) is not registered")
"""GetPlugin in pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A warning event about a pod that has not started, which was given ``times`` times."""

    pod: Obj
    reason: str
    message: str
    times: int

    def __str__(self) -> str:
        times = f" ({self.times} times)" if self.times > 1 else ""
        said = one_line(redact_log(self.message), 600)
        return f"pod {self.pod['metadata']['name']}: {self.reason}{times}: {said}"

    @property
    def refused(self) -> bool:
        """Whether the kubelet could not prepare a claim of the pod, because of its driver."""
        return self._answered or self._away is not None

    def certain(self, waited: float) -> str:
        """Why the pod will not start after ``waited`` seconds; "" if it still may."""
        if self._answered and self.times >= CERTAIN_TIMES and waited >= CERTAIN_SECONDS:
            return "that is the driver's answer"
        if self._away and self.times >= AWAY_TIMES and waited >= AWAY_SECONDS:
            return (
                f"the kubelet of {self.pod['spec'].get('nodeName')} has no driver of that name: its"
                f" log and the driver's show whether {self._away[1]} registers there, with this"
                " name and a version that the kubelet knows"
            )
        return ""

    @property
    def _answered(self) -> bool:
        return self._unprepared and any(answer in self.message for answer in _ANSWERS)

    @property
    def _away(self) -> re.Match[str] | None:
        return _AWAY.search(self.message) if self._unprepared else None

    @property
    def _unprepared(self) -> bool:
        return self.reason == "FailedPrepareDynamicResources"

    def concerns(self, names: Collection[str]) -> bool:
        """Whether the pod, or the Job that made it, is one of these."""
        meta = self.pod["metadata"]
        job = meta.get("labels", {}).get("batch.kubernetes.io/job-name")
        return meta["name"] in names or job in names


def troubles(context: Context) -> list[Trouble]:
    """Warnings about pods of the scenario's namespace that have not started."""
    waiting: dict[str, Obj] = {}
    events: Sequence[Obj] = ()
    with contextlib.suppress(ApiError):  # the role may not allow to read events
        for pod in context.scope.find(Query("v1", "Pod")):
            if pod.get("status", {}).get("phase", "Pending") == "Pending":
                waiting[pod["metadata"].get("uid", "")] = pod
        events = context.scope.find(Query("v1", "Event")) if waiting else ()
    found = []
    for event in events:
        pod = waiting.get(event["involvedObject"].get("uid", ""), {})
        reason = event.get("reason", "")
        old = reason == "FailedScheduling" and bool(pod and pod["spec"].get("nodeName"))
        if pod and event.get("type") == "Warning" and not old:
            times = max(event.get("count") or 1, (event.get("series") or {}).get("count") or 1)
            found.append(Trouble(pod, reason, event.get("message", ""), times))
    return found


def ask_again(trouble: Trouble, context: Context) -> None:
    """Make the kubelet try to prepare the pod's claims now."""
    change = {"metadata": {"annotations": {ANNOTATION: str(trouble.times)}}}
    with contextlib.suppress(ApiError):  # it is gone meanwhile
        context.scope.patch(Ref.of(trouble.pod), change)


_LOG = logging.getLogger(__name__)

FINAL_SECONDS: Final = 10.0
"""For how long an answer that stays as it is may differ from claims and slices: these arrive by
watches."""

NEVER_ASKED: Final = Evaluation(False, "nothing: the target never let the check run", {})


class Divergence(AssertionError):  # noqa: N818 -- it is a finding about the target, not an error
    """The target did not do what the scenario says, which fails the scenario."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}; found {found}")
        self.expected = expected
        self.found = found


def await_expectation(expectation: Expectation, context: Context) -> dict[str, Any]:
    """Wait until an expectation holds, or check that it holds all the time.

    Returns what was observed, comparable between targets.

    Raises:
        Divergence: it does not hold.
        TargetError: the target broke.
    """
    if not isinstance(expectation, Timed):
        seen = expectation.evaluate(context)
        if not seen.holds:
            raise Divergence(expectation.describe(), seen.finding)
        return dict(seen.observed)
    if expectation.consistently is not None:
        return _hold(expectation, expectation.consistently, context)
    observed = _eventually(expectation, context)
    if expectation.must_stay:
        _hold(expectation, context.scenario.spec.timeouts.consistently, context)
        _note_undecided(expectation.may_want_devices, context)
    return observed


def _eventually(expectation: Timed, context: Context) -> dict[str, Any]:
    timeouts = context.scenario.spec.timeouts
    timeout = timeouts.pod_running if expectation.waits_for_start else timeouts.eventually
    if expectation.eventually is not None:
        timeout = expectation.eventually
    timeout = context.limit(timeout)
    last, since = NEVER_ASKED, context.scope.now()

    def check() -> Evaluation | None:
        nonlocal last, since
        seen = expectation.evaluate(context)
        if not seen.final or seen.finding != last.finding:
            since = context.scope.now()
        last = seen
        if seen.holds:
            _not_too_early(expectation, seen, context)
        settled = seen.final and context.scope.now() - since >= FINAL_SECONDS
        return seen if seen.holds or settled else None

    awaited = {name for name, _ in expectation.list_scheduled_pods()}
    _LOG.debug(
        "%s: up to %g s for %s", context.scenario.metadata.name, timeout, expectation.describe()
    )
    left = timeout
    while True:
        share = min(left, ASK_AGAIN_SECONDS) if awaited else left
        seen = context.wait(check, share)
        if seen is not None and seen.holds:
            return dict(seen.observed)
        if seen is not None:
            what = f"{last.finding}; given up after {FINAL_SECONDS:g} s, for nothing is asked again"
            raise Divergence(expectation.describe(), what)
        left -= share
        found = troubles(context)
        refused = [one for one in found if one.refused and one.concerns(awaited)]
        certain = [why for one in refused if (why := one.certain(timeout - left))]
        if left <= 0 or certain:
            break
        for one in refused:
            ask_again(one, context)
    _note_undecided(expectation.may_want_devices, context)
    reasons = [str(one) for one in found if one.message not in last.finding][:5]
    early = [f"given up after {timeout - left:g} s, for {why}" for why in certain[:1]]
    raise Divergence(
        f"{expectation.describe()} within {timeout:g} s",
        "; ".join([last.finding, *reasons, *(early if left > 0 else [])]),
    )


def _not_too_early(expectation: Timed, seen: Evaluation, context: Context) -> None:
    """Raise Divergence if an expectation holds before ``notBefore``.

    Time counts from before the step's request until after the observation, so it is never short.
    """
    if expectation.not_before is None or expectation.since is None:
        return
    passed = context.scope.now() - context.progress.began[expectation.since]
    if passed < expectation.not_before:
        wanted = f"{expectation.describe()} not before {expectation.not_before:g} s"
        raise Divergence(
            f"{wanted} after step {expectation.since}", f"it after {passed:.1f} s: {seen.finding}"
        )


def _hold(expectation: Timed, duration: float, context: Context) -> dict[str, Any]:
    last = NEVER_ASKED

    def violation() -> Evaluation | None:
        nonlocal last
        last = expectation.evaluate(context)
        return None if last.holds else last

    _LOG.debug("%s: %g s of %s", context.scenario.metadata.name, duration, expectation.describe())
    with context.slot.observe():
        broken = context.wait(violation, duration)
    if broken is not None:
        raise Divergence(f"{expectation.describe()}, for {duration:g} s", last.finding)
    return dict(last.observed)


def _note_undecided(pod_name: str | None, context: Context) -> None:
    """Keep the snapshot for which a pod is pending, if it waits for devices only."""
    if pod_name is None or not context.record:
        return
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
    if gated := context.progress.gated:
        now = {gate: on for gates in gated.values() for gate, on in gates.items()}
        features = Features.from_dict(snapshot["features"])
        snapshot["features"] = features.with_gates(snapshot["kubernetes"], now).to_dict()
    context.progress.undecided.append({"pod": pod, "snapshot": snapshot})
