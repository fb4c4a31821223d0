"""How long claims of a scenario wait for their devices, as a watch sees it.

From the moment when the later of claim and pod is there until the claim is allocated, each as the
watch brings it: the API's own times have whole seconds. A pod that the scheduler has called
unschedulable waits for what the scenario does next, and says nothing about the scheduler.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kube.values import Obj


class ClaimLatencies:
    """Listens to claims and to pods of a namespace; ``seconds`` is what was measured so far."""

    def __init__(self, namespace: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds: list[float] = []
        self._namespace = namespace
        self._clock = clock
        self._since: dict[str, float] = {}  # uid of a claim or pod -> when it was first there
        self._allocated: set[str] = set()
        self._waited: set[str] = set()  # pods

    def hear_pod(self, change: str, pod: Obj) -> None:
        if change not in ("ADDED", "MODIFIED"):
            return
        uid = pod["metadata"]["uid"]
        self._since.setdefault(uid, self._clock())
        conditions = (pod.get("status") or {}).get("conditions") or ()
        if any(
            condition.get("reason") in ("Unschedulable", "SchedulingGated")
            for condition in conditions
        ):
            self._waited.add(uid)

    def hear_claim(self, change: str, claim: Obj) -> None:
        if change not in ("ADDED", "MODIFIED"):
            return
        if claim["metadata"].get("namespace") != self._namespace:
            return
        now, uid = self._clock(), claim["metadata"]["uid"]
        self._since.setdefault(uid, now)
        status = claim.get("status") or {}
        if "allocation" not in status:
            self._allocated.discard(uid)
            return
        if uid in self._allocated:
            return
        self._allocated.add(uid)
        # The scheduler writes the allocation and for whom it is at once (bindClaim).
        pods = [
            consumer["uid"]
            for consumer in status.get("reservedFor") or ()
            if consumer["resource"] == "pods"
        ]
        if len(pods) == 1 and pods[0] in self._since and pods[0] not in self._waited:
            self.seconds.append(now - max(self._since[uid], self._since[pods[0]]))
