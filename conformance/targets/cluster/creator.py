"""Creating objects: once each, and not before the cluster can take them."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import UTC, datetime
from threading import Lock

from conformance.targets.cluster.accounts import headers_of
from kube.api import Api, Resource
from kube.base.errors import TargetError
from kube.connection import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Connection
from kube.errors import ApiError, UnsureError
from kube.nodes import RUN_LABEL
from kube.store import has_labels
from kube.values import Obj, User

RENEWAL = 10.0  # Seconds between two signs of life.


class HollowNodes:
    """Writes the status of nodes without a kubelet, and keeps them Ready until they are deleted.

    Without renewal the node lifecycle controller calls a node NotReady after 40 to 50 seconds. It
    takes ``lastHeartbeatTime`` of the Ready condition for a sign of life, as well as a Lease, which
    would need more permissions (``tryUpdateNodeHealth`` in
    pkg/controller/nodelifecycle/node_lifecycle_controller.go).
    """

    def __init__(self, connection: Connection, renewal: float = RENEWAL) -> None:
        self._connection = connection
        self._renewal = renewal
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def adopt(self, node: Obj, status: Obj, agent: str = "") -> Obj:
        """Write a new node's status, and renew the heartbeat of its Ready condition from now on.

        Returns the node with that status.

        Raises ApiError: the status was refused.
        """
        name = node["metadata"]["name"]
        now = _now()
        conditions = [
            {"lastTransitionTime": now, "lastHeartbeatTime": now, **condition}
            for condition in status.get("conditions") or []
        ]
        written = self._patch(
            name, {**status, "conditions": conditions} if conditions else status, MERGE_PATCH, agent
        )
        if any(condition.get("type") == "Ready" for condition in conditions):
            with self._lock:
                self._names.add(name)
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._renew_all, name="hollow nodes", daemon=True
                    )
                    self._thread.start()
        return written

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)

    def _patch(self, name: str, status: Obj, content_type: str, agent: str = "") -> Obj:
        node: Obj = self._connection.request(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"fieldValidation": "Strict"},
            {"status": status},
            content_type=content_type,
            agent=agent,
        )
        return node

    def _renew_all(self) -> None:
        while not self._stopping.wait(self._renewal):
            with self._lock:
                names = sorted(self._names)
            for name in names:
                # Merged by type (NodeStatus.conditions, patchMergeKey=type): whatever else a
                # scenario wrote meanwhile, into this condition or beside it, stays as it is.
                beat = {"conditions": [{"type": "Ready", "lastHeartbeatTime": _now()}]}
                try:
                    self._patch(name, beat, STRATEGIC_MERGE_PATCH)
                except ApiError as error:
                    if error.code == 404:
                        with self._lock:
                            self._names.discard(name)
                except TargetError:
                    continue  # the scenario that uses the node meets it too, and reports it


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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
        """Create an object, unknown fields being an error; return what the server made of it.

        Raises:
            ApiError: the server refused.
            TargetError: no answer, and it is not known whether it was done.
        """
        if resource.kind in _MAKES_PODS:
            with self._awaiting:  # of several that come at once, none goes ahead
                if namespace in self._young_namespaces:
                    self._await_service_account(namespace)
        created = self._create_once(resource, namespace, obj, user)
        if resource.kind == "Namespace" and not resource.group:
            self._young_namespaces.add(created["metadata"]["name"])
        if resource.kind == "Node" and obj.get("status"):
            created = self._hollow.adopt(created, obj["status"], self._agent)
        return created

    def _create_once(
        self, resource: Resource, namespace: str | None, obj: Obj, user: User | None
    ) -> Obj:
        """Create; where the answer got lost, look whether it was done, and if not, do it again.

        That is known only of an object with a name and with the labels of this run.
        """
        meta = obj["metadata"]
        labels = meta.get("labels") or {}
        query = {"fieldValidation": "Strict"}
        for attempt in range(_ATTEMPTS):
            try:
                created: Obj = self._api.connection.request(
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
                existing = self._api.read(resource, namespace, meta["name"], self._agent)
                if existing is not None:
                    if has_labels(existing, labels):
                        return existing
                    raise
            else:
                return created
        raise AssertionError("the last attempt returns or raises")

    def _await_service_account(self, namespace: str) -> None:
        """Wait for the service account of a namespace: until then, moments, pods are refused."""
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
