"""The device taint eviction controller: deletes pods whose devices have a NoExecute taint.

It also says in the status of each DeviceTaintRule what the rule does, or would do. Follows
pkg/controller/devicetainteviction/device_taint_eviction.go of Kubernetes 1.37. Gates:
DRADeviceTaints, DRADeviceTaintRules.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.cluster import Cluster, set_condition
from conformance.targets.reference.controllers.evictor import Eviction, Evictor
from conformance.targets.reference.controllers.rule_status import RuleReporter
from conformance.targets.reference.store import uid_of
from conformance.targets.seam.values import Obj

_CONDITION: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByDeviceTaintManager",
    "message": "Device Taint manager: deleting due to NoExecute taint",
}


class EvictionController:
    """Evicts pods from tainted devices."""

    watches = frozenset({"Pod", "ResourceClaim", "ResourceSlice", "DeviceTaintRule"})

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self._evicted: Counter[str] = Counter()
        """Rule uid -> pods that had to go because of it."""
        self.reporter = RuleReporter(cluster, self._evicted)

    def restart(self) -> None:
        """See `Remembers.restart`."""
        self._evicted.clear()
        self.reporter.restart()

    def sync(self) -> None:
        """One round over all rules, then over all pods that have a node."""
        if not self._cluster.gates.get("DRADeviceTaints"):
            return
        self.reporter.report()
        evictor = Evictor.of(self._cluster)
        if not (evictor.published or evictor.rules):
            return
        for pod in self._store.all("Pod"):
            evictions = self.evictions(evictor, pod)
            due = min((eviction.when for eviction in evictions), default=None)
            if due is not None and due <= self._cluster.clock.now:
                self._evict(pod, evictions)
            elif due is not None:
                self._cluster.clock.wake_in(due - self._cluster.clock.now)

    def evictions(self, evictor: Evictor, pod: Obj) -> list[Eviction]:
        """Why and when a pod has to leave its devices."""
        return list(evictor.evictions(pod))

    def _evict(self, pod: Obj, evictions: list[Eviction]) -> None:
        who = "device-taint-eviction"
        self._cluster.event(
            pod, "Normal", "DeviceTaintManagerEviction", "Marking for deletion", who
        )
        now = self._cluster.clock.timestamp()
        pod = self._store.modify(pod, lambda new: set_condition(new["status"], _CONDITION, now))
        self._evicted.update({uid_of(item.rule) for item in evictions if item.rule is not None})
        self._api.delete_stored(pod)
