"""What all workload controllers share, and the ReplicaSet controller, which needs nothing else.

A workload keeps a number of pods of its template. What differs is a row of this table:

| kind | number | names | too many go | restarts |
|---|---|---|---|---|
| ReplicaSet | ``replicas`` | generated | the least advanced first | always |
| Deployment | its ReplicaSets have the pods | template hash | oldest template first | always |
| StatefulSet | ``replicas`` | ordinals | the last ordinal first, one by one | always |
| DaemonSet | one on each node that suits | generated | those on other nodes | always |
| Job | what is missing of ``completions`` | generated | the newest first | never, on failure |

All of them count a pod as available once it is ready, as if minReadySeconds were always 0, and
adopt no pods that they have not made. Follows ``RealPodControl.CreatePods`` and
``GetPodFromTemplate`` of pkg/controller/controller_utils.go.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kube.errors import ApiError
from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster
from kubesim.store import clone, name_of, namespace_of, uid_of


class WorkloadController:
    """Reconciles the objects of one kind. ``watches``: see `Controller`."""

    kind: ClassVar[str]
    component: ClassVar[str]
    watches = frozenset({"Pod", "PriorityClass", "ResourceQuota"})

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._api = api
        self._store = cluster.store
        self.watches = self.watches | {self.kind}

    def sync(self) -> None:
        """Look once at all objects that are not being deleted."""
        for workload in self._store.all(self.kind):
            if not pods.is_deleted(workload):
                self.reconcile(workload)

    def reconcile(self, workload: Obj) -> None:
        """Bring the cluster closer to what one object wants."""
        raise NotImplementedError

    def list_owned(self, workload: Obj, kind: str = "Pod") -> list[Obj]:
        """Return the objects of a kind that a workload controls, the oldest first."""
        objects = self._store.all(kind, namespace_of(workload))
        return [obj for obj in objects if pods.is_controlled_by(obj, workload)]

    def manage_replicas(
        self, owner: Obj, active: Sequence[Obj], wanted: int, **metadata: Any
    ) -> list[Obj]:
        """Delete the last of too many pods, make those that are missing; returns the active."""
        for pod in active[wanted:]:
            self._api.delete_stored(pod)
        kept_pods = list(active[:wanted])
        while len(kept_pods) < wanted:
            spec = clone(owner["spec"]["template"]["spec"])
            new_pod = self.make_pod(owner, spec, **metadata)
            if new_pod is None:
                break
            kept_pods.append(new_pod)
        return kept_pods

    def delete_pods(self, *doomed: Obj) -> None:
        """Delete pods, unless that was asked for already."""
        for pod in doomed:
            if not pods.is_deleted(pod):
                self._api.delete_stored(pod)

    def make_pod(self, owner: Obj, spec: Obj, **metadata: Any) -> Obj | None:
        """Make a pod; None if it is refused, which an event reports.

        ``metadata``: beside that of the template; labels are added to its own.
        """
        template: Mapping[str, Any] = owner["spec"]["template"].get("metadata") or {}
        labels = {**(template.get("labels") or {}), **metadata.pop("labels", {})}
        annotations = template.get("annotations")
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "generateName": f"{name_of(owner)}-",
                "labels": labels,
                **({"annotations": dict(annotations)} if annotations else {}),
                "ownerReferences": [controller_reference(owner)],
                **metadata,
            },
            "spec": spec,
        }
        try:
            created_pod = self._api.create(pod, namespace_of(owner))
        except ApiError as error:
            self.record_event(owner, "FailedCreate", f"Error creating: {error.message}", "Warning")
            return None
        self.record_event(owner, "SuccessfulCreate", f"Created pod: {name_of(created_pod)}")
        return created_pod

    def record_event(self, workload: Obj, reason: str, message: str, level: str = "Normal") -> None:
        self._cluster.record_event(workload, level, reason, message, self.component)

    def update_status(self, workload: Obj, status: Mapping[str, Any], **omitempty: int) -> None:
        """Write a status; ``omitempty``: counts that are left out where they are 0."""
        new_status = {name: count for name, count in omitempty.items() if count}
        new_status |= {**status, "observedGeneration": workload["metadata"]["generation"]}
        self._store.modify(workload, lambda new: new.update(status=new_status))


class ReplicaSetController(WorkloadController):
    """Reconciles ReplicaSets (pkg/controller/replicaset/replica_set.go)."""

    kind = "ReplicaSet"
    component = "replicaset-controller"

    def reconcile(self, replica_set: Obj) -> None:
        """Keep ``replicas`` pods."""
        active = [pod for pod in self.list_owned(replica_set) if pods.is_active(pod)]
        active.sort(key=_progress, reverse=True)
        active = self.manage_replicas(replica_set, active, int(replica_set["spec"]["replicas"]))
        count, ready = len(active), sum(map(pods.is_ready, active))
        self.update_status(
            replica_set,
            {"replicas": count},
            fullyLabeledReplicas=count,
            readyReplicas=ready,
            availableReplicas=ready,
        )


def _progress(pod: Obj) -> tuple[bool, bool, bool]:
    """Sorts pods by how far they have come; equal ones stay in the order of creation.

    Follows ``ActivePodsWithRanks`` of pkg/controller/controller_utils.go.
    """
    running = pod["status"].get("phase") == "Running"
    return (bool(pod["spec"].get("nodeName")), running, pods.is_ready(pod))


def controller_reference(owner: Obj) -> Obj:
    """Return the entry in ``metadata.ownerReferences`` of what a workload makes."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def template_hash(owner: Obj) -> str:
    """Return ten hexadecimal digits that differ between the templates of a workload."""
    text = json.dumps(owner["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
