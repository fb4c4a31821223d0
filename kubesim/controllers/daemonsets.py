"""The DaemonSet controller: one pod on each node that suits.

A changed template reaches pods that are made anew and no others, as if its updateStrategy were
always OnDelete. Follows pkg/controller/daemon/daemon_controller.go.
"""

from __future__ import annotations

from typing import Final

from kube.values import Obj, selected_node
from kubesim import pods
from kubesim.controllers.node_lifecycle import taints_of
from kubesim.controllers.workloads import WorkloadController
from kubesim.store import clone, name_of
from reference_allocator.rules.node_eligibility import node_problem

_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""What pods of a DaemonSet tolerate whatever its template says."""


class DaemonSetController(WorkloadController):
    """Reconciles DaemonSets."""

    kind = "DaemonSet"
    component = "daemonset-controller"
    watches = WorkloadController.watches | {"Node"}

    def list_nodes(self, daemon_set: Obj) -> list[str]:
        """Return the nodes on which a pod of it should be."""
        spec = pod_spec(daemon_set)
        return [name_of(node) for node in self._store.all("Node") if not node_problem(node, spec)]

    def reconcile(self, daemon_set: Obj) -> None:
        """Keep a pod on each node that suits, and none on any other."""
        pods_by_node: dict[str, list[Obj]] = {}
        for pod in self.list_owned(daemon_set):
            pods_by_node.setdefault(_node_of(pod), []).append(pod)
        spec, node_names = pod_spec(daemon_set), self.list_nodes(daemon_set)
        for name, pods_on_node in pods_by_node.items():
            # One that has ended is replaced once it is gone; of several the oldest stays.
            staying = [pod for pod in pods_on_node if pods.is_active(pod)]
            staying = staying[:1] if self._may_stay(name, spec) else []
            self.delete_pods(*(pod for pod in pods_on_node if pod not in staying))
        for name in node_names:
            if name not in pods_by_node:
                new_pod = self._add_pod(daemon_set, name)
                pods_by_node[name] = [new_pod] if new_pod is not None else []
        occupied_nodes = {name for name, pods_on_node in pods_by_node.items() if pods_on_node}
        current = [pods_by_node[name][0] for name in node_names if name in occupied_nodes]
        status = {
            "currentNumberScheduled": len(current),
            "desiredNumberScheduled": len(node_names),
            "numberMisscheduled": len(occupied_nodes.difference(node_names)),
            "numberReady": sum(1 for pod in current if pods.is_ready(pod)),
        }
        self.update_status(daemon_set, status)

    def _may_stay(self, name: str, spec: Obj) -> bool:
        """Return whether a pod that is on a node may go on there (``nodeShouldRunDaemonPod``)."""
        node = self._store.get("Node", "", name)
        if node is None:
            return False
        running = {**node, "spec": {"taints": taints_of(node, "NoExecute")}}
        return node_problem(running, spec) is None

    def _add_pod(self, daemon_set: Obj, node: str) -> Obj | None:
        spec = pod_spec(daemon_set)
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        node_term = {"key": "metadata.name", "operator": "In", "values": [node]}
        affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity[required] = {"nodeSelectorTerms": [{"matchFields": [node_term]}]}
        return self.make_pod(daemon_set, spec)


def pod_spec(daemon_set: Obj) -> Obj:
    """Return the spec of its pods, without the node (``CreatePodTemplate``)."""
    spec: Obj = clone(daemon_set["spec"]["template"]["spec"])
    spec["tolerations"] = [
        *(spec.get("tolerations") or []),
        *(
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
            for key, effect in _TOLERATED
        ),
    ]
    return spec


def _node_of(pod: Obj) -> str:
    """Return the node for which a pod was made."""
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    return selected_node(affinity["requiredDuringSchedulingIgnoredDuringExecution"])
