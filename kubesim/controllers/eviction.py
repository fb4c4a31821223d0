"""The device taint eviction controller: deletes pods whose devices have a NoExecute taint.

It also says in the status of each DeviceTaintRule what the rule does, or would do. Follows
pkg/controller/devicetainteviction/device_taint_eviction.go of Kubernetes 1.37. Gates:
DRADeviceTaints, DRADeviceTaintRules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from kube.slices import results_of
from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster, set_condition
from kubesim.controllers.evictor import (
    Eviction,
    Evictor,
    has_evicting_taint,
    published_devices,
    published_taints,
    selects_device,
)
from kubesim.store import clone, namespace_of, uid_of
from kubesim.views import View
from reference_allocator.api import DeviceId

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
        self._waiting: set[str] = set()
        """Uids of pods that have to go later."""
        self.reporter = RuleReporter(cluster, self._evicted)
        self._tainted = View(self._store, ["ResourceSlice"], has_evicting_taint)
        self._published = published_taints(cluster, self._tainted)
        self._published_at = self._store.revision_of_kind("ResourceSlice")

    def restart(self) -> None:
        self._evicted.clear()
        self._waiting.clear()
        self.reporter.restart()

    def sync(self) -> None:
        """Look once at all rules, then at all pods that have a node."""
        if not self._cluster.gates.get("DRADeviceTaints"):
            return
        self.reporter.report()
        # Only where slices have changed: of thousands of them it takes long.
        revision = self._store.revision_of_kind("ResourceSlice")
        if revision != self._published_at:
            self._published = published_taints(self._cluster, self._tainted)
            self._published_at = revision
        evictor = Evictor.for_cluster(self._cluster, self._published)
        if not (evictor.published or evictor.rules or self._waiting):
            return
        for pod in self._store.all("Pod"):
            evictions = self.list_evictions(evictor, pod)
            due = min((eviction.when for eviction in evictions), default=None)
            if due is not None and due <= self._cluster.clock.now:
                self._evict(pod, evictions)
            elif due is not None:
                self._waiting.add(uid_of(pod))
                self._cluster.clock.wake_in(due - self._cluster.clock.now)
            elif uid_of(pod) in self._waiting and not pods.is_deleted(pod):
                self._waiting.discard(uid_of(pod))
                self._event(pod, "Cancelling deletion")

    def list_evictions(self, evictor: Evictor, pod: Obj) -> list[Eviction]:
        """Return why and when a pod has to leave its devices."""
        return list(evictor.list_evictions(pod))

    def _evict(self, pod: Obj, evictions: list[Eviction]) -> None:
        self._event(pod, "Marking for deletion")
        self._waiting.discard(uid_of(pod))
        now = self._cluster.clock.format_timestamp()
        pod = self._store.modify(pod, lambda new: set_condition(new["status"], _CONDITION, now))
        self._evicted.update({uid_of(item.rule) for item in evictions if item.rule is not None})
        self._api.delete_stored(pod)

    def _event(self, pod: Obj, message: str) -> None:
        reason, component = "DeviceTaintManagerEviction", "device-taint-eviction-controller"
        self._cluster.record_event(pod, "Normal", reason, message, component)


_PERIOD: Final = 10.0  # Seconds between two updates of one rule.

_TYPE: Final = "EvictionInProgress"
_NOT_AGAIN: Final = (
    "if the effect was NoExecute. This information will not be updated again. Recreate the "
    "DeviceTaintRule to trigger an update."
)


class RuleReporter:
    """Writes the condition EvictionInProgress of DeviceTaintRules.

    With the effect None it says how many pods a rule would evict. Follows maybeUpdateRuleStatus in
    pkg/controller/devicetainteviction/device_taint_eviction.go.

    ``evicted``: rule uid -> pods that were evicted because of it.
    """

    def __init__(self, cluster: Cluster, evicted: Mapping[str, int]) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._evicted = evicted
        self._reported: dict[str, tuple[int, float]] = {}

    def restart(self) -> None:
        """Forget what was reported: it stands in the rules."""
        self._reported.clear()

    def report(self) -> None:
        """Report at once on a new or changed rule, later not more often than each period."""
        now = self._cluster.clock.now
        for rule in self._store.all("DeviceTaintRule"):
            generation, since = self._reported.get(uid_of(rule), (0, 0.0))
            is_new = generation != rule["metadata"]["generation"]
            if not is_new and rule["spec"]["taint"]["effect"] != "NoExecute":
                continue
            changed = self._set_rule_condition(rule, self.build_condition(rule))
            if not is_new and changed == rule:
                continue
            if not is_new and now < since + _PERIOD:
                self._cluster.clock.wake_in(since + _PERIOD - now)
                continue
            self._reported[uid_of(rule)] = rule["metadata"]["generation"], now
            self._store.replace(changed)

    def _set_rule_condition(self, rule: Obj, condition_fields: Obj) -> Obj:
        new_rule = clone(rule)
        condition = {
            **condition_fields,
            "type": _TYPE,
            "observedGeneration": rule["metadata"]["generation"],
        }
        set_condition(new_rule["status"], condition, self._cluster.clock.format_timestamp())
        return new_rule

    def build_condition(self, rule: Obj) -> Obj:
        """Return what the condition says of a rule now, type and times aside."""
        effect = rule["spec"]["taint"]["effect"]
        evicted = self._evicted.get(uid_of(rule), 0)
        status, reason, message = "False", "OtherEffect", ""
        if effect == "NoExecute":
            concerned, namespaces = self._count_pods_to_evict(rule)
            reason = "Completed" if evicted else "NotStarted"
            if concerned:
                status, reason = "True", "PodsPendingEviction"
                verb = "needs" if concerned == 1 else "need"
                message = (
                    f"{_format_count(concerned, 'pod')} {verb} to be evicted in "
                    f"{_format_namespaces(namespaces)}."
                )
        elif effect == "None":
            concerned, namespaces = self._count_pods_to_evict(rule)
            published, allocated = self._count_selected_devices(rule)
            reason = "NoEffect"
            message = (
                f"{_format_count(published, 'published device')} selected. "
                f"{_format_count(allocated, 'allocated device')} selected. "
                f"{_format_count(concerned, 'pod')} would be evicted in "
                f"{_format_namespaces(namespaces)} {_NOT_AGAIN}"
            )
        else:
            message = "Eviction only happens for the NoExecute effect."
        if evicted:
            evicted_text = f"{_format_count(evicted, 'pod')} evicted since starting the controller."
            message = f"{message} {evicted_text}".strip()
        return {"status": status, "reason": reason, "message": message}

    def _count_pods_to_evict(self, rule: Obj) -> tuple[int, int]:
        """Count the pods that have to go if the effect is NoExecute, and their namespaces."""
        taint = {**rule["spec"]["taint"], "effect": "NoExecute"}
        rule_evictor = Evictor(
            self._cluster, {}, [{**rule, "spec": {**rule["spec"], "taint": taint}}]
        )
        evicted_pods = [
            pod for pod in self._store.all("Pod") if any(rule_evictor.list_evictions(pod))
        ]
        return len(evicted_pods), len({namespace_of(pod) for pod in evicted_pods})

    def _count_selected_devices(self, rule: Obj) -> tuple[int, int]:
        """Count the devices that a rule selects: published, and allocated (once for each claim)."""
        allocated = [
            DeviceId(result["driver"], result["pool"], result["device"])
            for claim in self._store.all("ResourceClaim")
            for result in results_of(claim)
        ]
        return (
            sum(selects_device(rule, device) for device in published_devices(self._cluster)),
            sum(selects_device(rule, device) for device in allocated),
        )


def _format_count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _format_namespaces(namespaces: int) -> str:
    return "1 namespace" if namespaces == 1 else f"{namespaces} different namespaces"
