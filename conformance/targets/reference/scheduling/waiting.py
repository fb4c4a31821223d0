"""Pods that have their node and devices, but are not bound before the devices are ready.

Follows the end of PreBind of the dynamicresources plugin (pkg/scheduler/framework/plugins/
dynamicresources/dynamicresources.go), which polls every 5 s; here it is looked at each change.
"""

from __future__ import annotations

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.store import name_of, uid_of
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.controllers import pods
from conformance.targets.reference.scheduling import bindingconditions
from conformance.targets.reference.scheduling.binding import Binder
from conformance.targets.reference.scheduling.bindingconditions import TIMEOUT, Readiness


class WaitingPods:
    """Binds pods at once, or when their devices are ready.

    Args:
        cluster: theirs.
        binder: gives them their node.
        assumed: pod uid -> node, of those that wait; kept up to date here.
    """

    def __init__(self, cluster: Cluster, binder: Binder, assumed: dict[str, str]) -> None:
        self._cluster = cluster
        self._binder = binder
        self._assumed = assumed

    def __contains__(self, pod: Obj) -> bool:
        return uid_of(pod) in self._assumed

    def bind(self, pod: Obj, node: str) -> None:
        """Bind a pod whose claims are reserved, or let it wait."""
        pod = self._cluster.store.by_uid(uid_of(pod)) or pod
        if not any(bindingconditions.applies(self._cluster, claim) for claim in self._claims(pod)):
            self._binder.bind(pod, node)
            return
        self._assumed[uid_of(pod)] = node
        self._cluster.clock.wake_in(TIMEOUT + 1)
        self._binder.wait(pod, node)
        self.sync()

    def sync(self) -> None:
        """Bind those that are ready, and give up those whose devices failed or took too long."""
        for uid, node in list(self._assumed.items()):
            pod = self._cluster.store.by_uid(uid)
            if pod is None or pods.is_deleted(pod):
                del self._assumed[uid]
                continue
            problem, ready = "", True
            for claim in self._claims(pod):
                if not bindingconditions.applies(self._cluster, claim):
                    continue
                state = bindingconditions.readiness(self._cluster, claim)
                ready = ready and state is Readiness.READY
                if state is Readiness.FAILED:
                    problem = f"device binding failed: claim={name_of(claim)}"
                elif state is Readiness.WAITING and bindingconditions.is_late(self._cluster, claim):
                    problem = f"device binding timeout: claim={name_of(claim)}"
            if problem:
                del self._assumed[uid]
                self._binder.unreserve(pod)
                message = f'running PreBind plugin "DynamicResources": {problem}'
                self._binder.fail(pod, "SchedulerError", message)
            elif ready:
                del self._assumed[uid]
                self._binder.bind(pod, node)

    def _claims(self, pod: Obj) -> list[Obj]:
        named = [claim for _, claim in pods.claims(self._cluster, pod)]
        special = pods.special_claim(self._cluster, pod)
        return [claim for claim in (*named, special) if claim is not None]
