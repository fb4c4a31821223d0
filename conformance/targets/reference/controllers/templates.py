"""Pods that a controller makes of its object's template, which the API server may refuse.

Follows ``RealPodControl.CreatePods`` and ``GetPodFromTemplate`` of pkg/controller/
controller_utils.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.targets.base import ApiError, Obj
from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.store import name_of, namespace_of, uid_of


class PodMaker:
    """Makes pods for objects of one controller.

    Args:
        cluster: told of what is made, and of what is refused.
        api: that may refuse.
        component: the controller's name in events.
    """

    def __init__(self, cluster: Cluster, api: ApiServer, component: str) -> None:
        self._cluster = cluster
        self._api = api
        self._component = component

    def make(self, owner: Obj, spec: Obj, **metadata: Any) -> Obj | None:
        """Make a pod; None if it is refused, which an event tells.

        Args:
            owner: its controller, which has the template.
            spec: the pod's.
            metadata: beside what the template says; labels are added to its own.
        """
        template: Mapping[str, Any] = owner["spec"]["template"].get("metadata") or {}
        labels = {**(template.get("labels") or {}), **metadata.pop("labels", {})}
        annotations = template.get("annotations")
        controller = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": name_of(owner),
            "uid": uid_of(owner),
            "controller": True,
            "blockOwnerDeletion": True,
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "generateName": f"{name_of(owner)}-",
                "labels": labels,
                **({"annotations": dict(annotations)} if annotations else {}),
                "ownerReferences": [controller],
                **metadata,
            },
            "spec": spec,
        }
        try:
            made = self._api.create(pod, namespace_of(owner))
        except ApiError as error:
            text = f"Error creating: {error.message}"
            self._cluster.event(owner, "Warning", "FailedCreate", text, self._component)
            return None
        text = f"Created pod: {name_of(made)}"
        self._cluster.event(owner, "Normal", "SuccessfulCreate", text, self._component)
        return made
