"""Why pods do not start, as events say it; and when there is no use in waiting for one any longer.

A kubelet lets a minute or more pass after a refused NodePrepareResources (its resync interval: the
failure is no error of the pod's sync, pkg/kubelet/kuberuntime), but looks at a pod at once when the
pod changes. So a refused pod is given an annotation, and a driver that refuses the same claim in
the same words again and again is believed: docs/decisions/0025-a-refused-preparation.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from conformance.engine.context import Context
from conformance.redaction import redact_log
from conformance.targets.base import ApiError, Obj, Ref
from conformance.text import one_line

ASK_AGAIN_SECONDS = 5.0
CERTAIN_TIMES = 6
"""So often, and so for 25 s at least, must the driver itself refuse in the same words."""

ANNOTATION = "dra-conformance.dev/refused"

_REFUSED = "NodePrepareResources failed for ResourceClaim "
"""How a kubelet quotes the driver's answer (pkg/kubelet/cm/dra/manager.go). What it says of a
driver that is not there or does not answer is another text, and may pass."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A warning about a pod that has not started.

    Attributes:
        times: how often it was given.
    """

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
        """Whether the driver has answered that it does not prepare a claim of the pod."""
        return self.reason == "FailedPrepareDynamicResources" and _REFUSED in self.message

    @property
    def certain(self) -> bool:
        """Whether the driver has said so often enough to be believed."""
        return self.refused and self.times >= CERTAIN_TIMES

    def concerns(self, names: Collection[str]) -> bool:
        """Whether the pod, or the Job that made it, is one of these."""
        meta = self.pod["metadata"]
        job = meta.get("labels", {}).get("batch.kubernetes.io/job-name")
        return meta["name"] in names or job in names


def troubles(context: Context) -> list[Trouble]:
    """The warnings about pods of the scenario's namespace that have not started."""
    waiting: dict[str, Obj] = {}
    events: Sequence[Obj] = ()
    with contextlib.suppress(ApiError):  # somebody's role may not let us read events
        for pod in context.scope.list("v1", "Pod"):
            if pod.get("status", {}).get("phase", "Pending") == "Pending":
                waiting[pod["metadata"].get("uid", "")] = pod
        events = context.scope.list("v1", "Event") if waiting else ()
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
