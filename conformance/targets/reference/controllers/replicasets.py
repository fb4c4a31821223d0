"""The ReplicaSet controller: so many pods at any time.

Counts a pod as available once it is ready, as if minReadySeconds were always 0; takes over no pods
that it has not made. Follows pkg/controller/replicaset/replica_set.go.
"""

from __future__ import annotations

from conformance.targets.base import Obj
from conformance.targets.reference import pods
from conformance.targets.reference.controllers.templates import WorkloadController, without_zeros
from conformance.targets.reference.store import clone


class ReplicaSetController(WorkloadController):
    """Reconciles ReplicaSets."""

    kind = "ReplicaSet"
    component = "replicaset-controller"
    watches = frozenset({"ReplicaSet", "Pod", "PriorityClass", "ResourceQuota"})

    def reconcile(self, replica_set: Obj) -> None:
        """Make or delete as many pods as there are too few or too many."""
        active = [pod for pod in self.owned(replica_set) if pods.is_active(pod)]
        wanted = int(replica_set["spec"]["replicas"])
        active.sort(key=_progress, reverse=True)
        for pod in active[wanted:]:
            self._api.delete_stored(pod)
        active = active[:wanted]
        for _ in range(wanted - len(active)):
            made = self.make_pod(replica_set, clone(replica_set["spec"]["template"]["spec"]))
            if made is None:
                break
            active.append(made)
        ready = sum(map(pods.is_ready, active))
        status = without_zeros(
            fullyLabeledReplicas=len(active), readyReplicas=ready, availableReplicas=ready
        )
        status |= {
            "replicas": len(active),
            "observedGeneration": replica_set["metadata"]["generation"],
        }
        self._store.modify(replica_set, lambda new: new.update(status=status))


def _progress(pod: Obj) -> tuple[bool, bool, bool]:
    """Of too many pods those stay that have come furthest, then the oldest.

    See ``ActivePodsWithRanks`` of pkg/controller/controller_utils.go; where this is the same,
    sorting keeps the order of creation.
    """
    running = pod["status"].get("phase") == "Running"
    return (bool(pod["spec"].get("nodeName")), running, pods.is_ready(pod))
