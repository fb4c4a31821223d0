"""The node lifecycle and taint eviction controllers: what becomes of nodes that are not ready.

Follows pkg/controller/nodelifecycle/node_lifecycle_controller.go and pkg/controller/tainteviction/
taint_eviction.go of Kubernetes 1.37: a kubelet that is silent makes its node Unknown, a node that
is not ready is tainted, and pods that do not tolerate a taint NoExecute are deleted. The time for
which one is tolerated counts from when the controller noticed, which a new process does anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster, set_condition
from kubesim.nodes.kubelet import Kubelet
from kubesim.store import uid_of
from reference_allocator.api import Taint, Toleration
from reference_allocator.rules.taints import tolerates

_GRACE_SECONDS: Final = 50.0  # ``--node-monitor-grace-period``.
_TAINTS: Final = {
    "False": "node.kubernetes.io/not-ready",
    "Unknown": "node.kubernetes.io/unreachable",
}


class NodeLifecycleController:
    """Looks after nodes by their condition Ready, and after their pods by their taints."""

    watches = frozenset({"Node", "Pod"})

    def __init__(self, cluster: Cluster, api: ApiServer, kubelets: Sequence[Kubelet]) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self._kubelets = kubelets
        self._noticed: dict[str, float] = {}
        """Pod uid -> when it was first seen to have to go, at once or later."""

    def restart(self) -> None:
        self._noticed.clear()

    def sync(self) -> None:
        for kubelet in self._kubelets:
            self._hear(kubelet)
        for each in self._store.all("Node"):
            self.taint(each)
        before, self._noticed = self._noticed, {}
        for pod in self._store.all("Pod"):
            node = self._store.get("Node", "", pod["spec"].get("nodeName") or "")
            if node is not None and not pods.is_deleted(pod):
                self._evict(pod, node, before.get(uid_of(pod), self._cluster.clock.now))

    def _hear(self, kubelet: Kubelet) -> None:
        """Call a node Unknown whose kubelet has been silent for long."""
        node = self._store.get("Node", "", kubelet.node)
        if kubelet.stopped_at is None or node is None:
            return
        clock = self._cluster.clock
        left = kubelet.stopped_at + _GRACE_SECONDS - clock.now
        if left > 0:
            clock.wake_in(left)
        elif _ready(node) != "Unknown":
            unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            now = clock.timestamp()
            self._store.modify(node, lambda new: set_condition(new["status"], unknown, now))

    def taint(self, node: Obj) -> None:
        """Give a node the taints that go with its condition, and take back the others."""
        wanted = _TAINTS.get(_ready(node))
        present = taints_of(node)
        kept = [taint for taint in present if taint["key"] not in {*_TAINTS.values()} - {wanted}]
        for effect in ("NoSchedule", "NoExecute") if wanted else ():
            if all((taint["key"], taint["effect"]) != (wanted, effect) for taint in kept):
                added = {"timeAdded": self._cluster.clock.timestamp()}
                kept.append(
                    {"key": wanted, "effect": effect, **(added if effect == "NoExecute" else {})}
                )
        if kept != present:
            self._store.modify(node, lambda new: new.setdefault("spec", {}).update(taints=kept))

    def _evict(self, pod: Obj, node: Obj, noticed: float) -> None:
        """Delete a pod that does not tolerate its node, or did for long enough."""
        seconds = tolerated_for(pod, node)
        if seconds is None:
            return
        left = noticed + seconds - self._cluster.clock.now
        if left > 0:
            self._noticed[uid_of(pod)] = noticed
            self._cluster.clock.wake_in(left)
        else:
            self._api.delete_stored(pod)


def taints_of(node: Obj, *effects: str) -> list[Obj]:
    """The taints of a node, those with these effects, or all."""
    found = (node.get("spec") or {}).get("taints") or []
    return [taint for taint in found if not effects or taint["effect"] in effects]


def tolerated_for(pod: Obj, node: Obj) -> float | None:
    """Seconds for which a pod tolerates all taints NoExecute of its node, None without end.

    Of several tolerations of a taint the first counts (``GetMatchingTolerations``).
    """
    tolerations = pod["spec"].get("tolerations") or []
    seconds = []
    for taint in map(Taint.from_dict, taints_of(node, "NoExecute")):
        fitting = (one for one in tolerations if tolerates(Toleration.from_dict(one), taint))
        found = next(fitting, None)
        if found is None:
            return 0.0
        if "tolerationSeconds" in found:
            seconds.append(float(max(found["tolerationSeconds"], 0)))
    return min(seconds, default=None)


def _ready(node: Obj) -> str:
    """The status of the condition Ready; empty without it."""
    for condition in (node.get("status") or {}).get("conditions") or []:
        if condition["type"] == "Ready":
            return str(condition["status"])
    return ""
