"""Creating objects: once each, and not before the cluster can take them."""

from __future__ import annotations

from contextlib import closing
from threading import Lock

from conformance.kubeapi.api import Api
from conformance.kubeapi.discovery import Resource
from conformance.kubeapi.errors import UnsureError
from conformance.kubeapi.store import has_labels
from conformance.targets.cluster.objects.accounts import headers_of
from conformance.targets.cluster.objects.hollow import HollowNodes
from conformance.targets.seam.values import RUN_LABEL, ApiError, Obj, TargetError, User

_MAKES_PODS = frozenset(
    {"Pod", "Job", "CronJob", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet"}
)
_ACCOUNT_SECONDS = 10
_ATTEMPTS = 3


class Creator:
    """Creates the objects of one scenario."""

    def __init__(self, api: Api, hollow: HollowNodes, agent: str = "") -> None:
        self._api = api
        self._hollow = hollow
        self._agent = agent
        self._young_namespaces: set[str] = set()
        self._awaiting = Lock()

    def create(
        self, resource: Resource, namespace: str | None, obj: Obj, user: User | None = None
    ) -> Obj:
        """Create an object, unknown fields being an error; what the server made of it.

        Raises:
            ApiError: the server refused.
            TargetError: no answer, and it is not known whether it was done.
        """
        if resource.kind in _MAKES_PODS:
            with self._awaiting:  # of several that come at once, none goes ahead
                if namespace in self._young_namespaces:
                    self._await_service_account(namespace)
        created = self._once(resource, namespace, obj, user)
        if resource.kind == "Namespace" and not resource.group:
            self._young_namespaces.add(created["metadata"]["name"])
        if resource.kind == "Node" and obj.get("status"):
            created = self._hollow.adopt(created, obj["status"], self._agent)
        return created

    def _once(self, resource: Resource, namespace: str | None, obj: Obj, user: User | None) -> Obj:
        """Create; where the answer got lost, look whether it was done, and if not, do it again.

        That is known only of an object with a name and with the labels of this run.
        """
        meta = obj["metadata"]
        labels = meta.get("labels") or {}
        query = {"fieldValidation": "Strict"}
        for attempt in range(_ATTEMPTS):
            try:
                made: Obj = self._api.connection.request(
                    "POST",
                    resource.path(namespace),
                    query,
                    obj,
                    agent=self._agent,
                    headers=headers_of(user),
                )
            except UnsureError:
                last = attempt == _ATTEMPTS - 1
                if last or RUN_LABEL not in labels or not meta.get("name"):
                    raise
                there = self._api.read(resource, namespace, meta["name"], self._agent)
                if there is not None:
                    if has_labels(there, labels):
                        return there
                    raise
            else:
                return made
        raise AssertionError("the last attempt returns or raises")

    def _await_service_account(self, namespace: str) -> None:
        """A pod is refused until its namespace's service account was made, moments later."""
        self._young_namespaces.discard(namespace)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        query = {
            "watch": "true",
            "fieldSelector": "metadata.name=default",
            "timeoutSeconds": str(_ACCOUNT_SECONDS),
        }
        try:
            with closing(iter(self._api.connection.stream(path, query, self._agent))) as events:
                next(events, None)
        except (ApiError, TargetError):
            pass  # the pod's own creation will say what is wrong
