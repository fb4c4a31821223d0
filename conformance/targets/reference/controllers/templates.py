"""Controllers of workloads, whose pods are made of a template; the API server may refuse them.

Follows ``RealPodControl.CreatePods`` and ``GetPodFromTemplate`` of pkg/controller/
controller_utils.go.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from conformance.targets.base import ApiError, Obj
from conformance.targets.reference import pods
from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.store import name_of, namespace_of, uid_of


class WorkloadController:
    """Reconciles the objects of one kind.

    Args:
        cluster: told of what is made, and of what is refused.
        api: that may refuse.

    Attributes:
        kind: of its objects.
        component: its name in events.
        watches: see `Controller`.
    """

    kind: ClassVar[str]
    component: ClassVar[str]
    watches: frozenset[str]

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._api = api
        self._store = cluster.store

    def sync(self) -> None:
        """One round over all objects that are not being deleted."""
        for workload in self._store.all(self.kind):
            if not pods.is_deleted(workload):
                self.reconcile(workload)

    def reconcile(self, workload: Obj) -> None:
        """Bring the cluster closer to what one object wants."""
        raise NotImplementedError

    def owned(self, workload: Obj, kind: str = "Pod") -> list[Obj]:
        """The objects of a kind that a workload controls, the oldest first."""
        found = self._store.all(kind, namespace_of(workload))
        return [obj for obj in found if pods.is_controlled_by(obj, workload)]

    def make_pod(self, owner: Obj, spec: Obj, **metadata: Any) -> Obj | None:
        """Make a pod; None if it is refused, which an event tells.

        Args:
            owner: its controller, which has the template.
            spec: the pod's.
            metadata: beside what the template says; labels are added to its own.
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
            made = self._api.create(pod, namespace_of(owner))
        except ApiError as error:
            self.event(owner, "FailedCreate", f"Error creating: {error.message}", "Warning")
            return None
        self.event(owner, "SuccessfulCreate", f"Created pod: {name_of(made)}")
        return made

    def event(self, workload: Obj, reason: str, message: str, level: str = "Normal") -> None:
        """Tell something of an object in an event."""
        self._cluster.event(workload, level, reason, message, self.component)


def controller_reference(owner: Obj) -> Obj:
    """The entry in ``metadata.ownerReferences`` of what a workload makes (``NewControllerRef``)."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def template_hash(owner: Obj) -> str:
    """What tells the templates of a workload apart, in ten letters."""
    text = json.dumps(owner["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def without_zeros(**counts: int) -> Obj:
    """Numbers of a status, which leaves those out that are 0."""
    return {name: count for name, count in counts.items() if count}
