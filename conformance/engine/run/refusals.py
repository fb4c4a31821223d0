"""What the warning events about a pod say of why it does not start, and when they are believed.

Pods do not start for what their events say. After a failed NodePrepareResources a kubelet retries
only at its resync interval, a minute or more (the failure is no error of the sync of the pod,
pkg/kubelet/kuberuntime), or when the pod changes. So the pod is given an annotation; and a driver
that repeats the same answer, or stays away for longer than a kubelet waits for one, is believed
(docs/decisions/0025-a-refused-preparation.md).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from conformance.engine.run.attempt import ScenarioAttempt
from kube.base.redaction import redact_log
from kube.base.text import one_line
from kube.errors import ApiError
from kube.values import Obj, Query, Ref

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
        message = one_line(redact_log(self.message), 600)
        return f"pod {self.pod['metadata']['name']}: {self.reason}{times}: {message}"

    @property
    def refused(self) -> bool:
        """Whether the kubelet could not prepare a claim of the pod, because of its driver."""
        return self._is_driver_answer or self._unregistered_driver is not None

    def certain(self, waited: float) -> str:
        """Why the pod will not start after ``waited`` seconds; "" if it still may."""
        if self._is_driver_answer and self.times >= CERTAIN_TIMES and waited >= CERTAIN_SECONDS:
            return "that is the driver's answer"
        if self._unregistered_driver and self.times >= AWAY_TIMES and waited >= AWAY_SECONDS:
            return (
                f"the kubelet of {self.pod['spec'].get('nodeName')} has no driver of that name: its"
                " log and the driver's show whether"
                f" {self._unregistered_driver[1]} registers there, with this name and a version"
                " that the kubelet knows"
            )
        return ""

    @property
    def _is_driver_answer(self) -> bool:
        return self._unprepared and any(answer in self.message for answer in _ANSWERS)

    @property
    def _unregistered_driver(self) -> re.Match[str] | None:
        return _AWAY.search(self.message) if self._unprepared else None

    @property
    def _unprepared(self) -> bool:
        return self.reason == "FailedPrepareDynamicResources"

    def concerns(self, names: Collection[str]) -> bool:
        """Whether the pod, or the Job that made it, is one of these."""
        meta = self.pod["metadata"]
        job = meta.get("labels", {}).get("batch.kubernetes.io/job-name")
        return meta["name"] in names or job in names


def troubles(attempt: ScenarioAttempt) -> list[Trouble]:
    """Warnings about pods of the scenario's namespace that have not started."""
    waiting: dict[str, Obj] = {}
    events: Sequence[Obj] = ()
    with contextlib.suppress(ApiError):  # the role may not allow to read events
        for pod in attempt.scope.find(Query("v1", "Pod")):
            if pod.get("status", {}).get("phase", "Pending") == "Pending":
                waiting[pod["metadata"].get("uid", "")] = pod
        events = attempt.scope.find(Query("v1", "Event")) if waiting else ()
    warnings = []
    for event in events:
        pod = waiting.get(event["involvedObject"].get("uid", ""), {})
        reason = event.get("reason", "")
        old = reason == "FailedScheduling" and bool(pod and pod["spec"].get("nodeName"))
        if pod and event.get("type") == "Warning" and not old:
            # An event of core/v1 is counted in `count`, one of events.k8s.io/v1 in `series`.
            times = max(event.get("count") or 1, (event.get("series") or {}).get("count") or 1)
            warnings.append(Trouble(pod, reason, event.get("message", ""), times))
    return warnings


def ask_again(trouble: Trouble, attempt: ScenarioAttempt) -> None:
    """Make the kubelet try to prepare the pod's claims now."""
    change = {"metadata": {"annotations": {ANNOTATION: str(trouble.times)}}}
    with contextlib.suppress(ApiError):  # it is gone meanwhile
        attempt.scope.patch(Ref.of(trouble.pod), change)
