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
            self._monitor_node_health(kubelet)
        for node_to_taint in self._store.all("Node"):
            self.taint_node(node_to_taint)
        noticed_earlier, self._noticed = self._noticed, {}
        for pod in self._store.all("Pod"):
            node = self._store.get("Node", "", pod["spec"].get("nodeName") or "")
            if node is not None and not pods.is_deleted(pod):
                self._evict(pod, node, noticed_earlier.get(uid_of(pod), self._cluster.clock.now))

    def _monitor_node_health(self, kubelet: Kubelet) -> None:
        """Call a node Unknown whose kubelet has been silent for long."""
        node = self._store.get("Node", "", kubelet.node)
        if kubelet.stopped_at is None or node is None:
            return
        clock = self._cluster.clock
        remaining_seconds = kubelet.stopped_at + _GRACE_SECONDS - clock.now
        if remaining_seconds > 0:
            clock.wake_in(remaining_seconds)
        elif _ready_status(node) != "Unknown":
            unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            now = clock.format_timestamp()
            self._store.modify(node, lambda new: set_condition(new["status"], unknown, now))

    def taint_node(self, node: Obj) -> None:
        """Give a node the taints that go with its condition, and take back the others."""
        condition_taint = _TAINTS.get(_ready_status(node))
        present = taints_of(node)
        new_taints = [
            taint
            for taint in present
            if taint["key"] not in {*_TAINTS.values()} - {condition_taint}
        ]
        for effect in ("NoSchedule", "NoExecute") if condition_taint else ():
            if all(
                (taint["key"], taint["effect"]) != (condition_taint, effect) for taint in new_taints
            ):
                added = {"timeAdded": self._cluster.clock.format_timestamp()}
                new_taints.append(
                    {
                        "key": condition_taint,
                        "effect": effect,
                        **(added if effect == "NoExecute" else {}),
                    }
                )
        if new_taints != present:
            self._store.modify(
                node, lambda new: new.setdefault("spec", {}).update(taints=new_taints)
            )

    def _evict(self, pod: Obj, node: Obj, noticed: float) -> None:
        """Delete a pod that does not tolerate its node, or did for long enough."""
        seconds = tolerated_for(pod, node)
        if seconds is None:
            return
        remaining_seconds = noticed + seconds - self._cluster.clock.now
        if remaining_seconds > 0:
            self._noticed[uid_of(pod)] = noticed
            self._cluster.clock.wake_in(remaining_seconds)
        else:
            self._api.delete_stored(pod)


def taints_of(node: Obj, *effects: str) -> list[Obj]:
    """Return the taints of a node, those with these effects, or all."""
    node_taints = (node.get("spec") or {}).get("taints") or []
    return [taint for taint in node_taints if not effects or taint["effect"] in effects]


def tolerated_for(pod: Obj, node: Obj) -> float | None:
    """Return seconds for which a pod tolerates all taints NoExecute of its node, None without end.

    Of several tolerations of a taint the first counts (``GetMatchingTolerations``).
    """
    tolerations = pod["spec"].get("tolerations") or []
    seconds = []
    for taint in map(Taint.from_dict, taints_of(node, "NoExecute")):
        matching = (
            toleration
            for toleration in tolerations
            if tolerates(Toleration.from_dict(toleration), taint)
        )
        first_match = next(matching, None)
        if first_match is None:
            return 0.0
        if "tolerationSeconds" in first_match:
            seconds.append(float(max(first_match["tolerationSeconds"], 0)))
    return min(seconds, default=None)


def _ready_status(node: Obj) -> str:
    """Return the status of the condition Ready; empty without it."""
    for condition in (node.get("status") or {}).get("conditions") or []:
        if condition["type"] == "Ready":
            return str(condition["status"])
    return ""
