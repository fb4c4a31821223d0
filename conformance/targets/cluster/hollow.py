"""Nodes without a kubelet, kept ready: enough of a node for the scheduler to place pods on it.

A scenario's hollow Node brings its own status. Nothing renews it, so after 40 to 50 seconds the
node lifecycle controller would call it NotReady and taint it. Instead of a Lease (another object in
another namespace, with more permissions) the Ready condition's ``lastHeartbeatTime`` is renewed:
the controller takes either as a sign of life (upstream
``pkg/controller/nodelifecycle/node_lifecycle_controller.go``, ``tryUpdateNodeHealth``). The taint
that admission puts on every new node until that controller has seen it is not waited for: pods of
such scenarios tolerate everything.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from conformance.kubeapi.connection import MERGE_PATCH, Connection
from conformance.targets.base import ApiError, Obj, TargetError

RENEWAL = 10.0
"""Seconds between two signs of life."""


class HollowNodes:
    """Writes the status of hollow nodes and renews it until they are deleted."""

    def __init__(self, connection: Connection, renewal: float = RENEWAL) -> None:
        self._connection = connection
        self._renewal = renewal
        self._lock = threading.Lock()
        self._statuses: dict[str, Obj] = {}  # node name -> status as it was given
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def adopt(self, node: Obj, status: Obj, agent: str = "") -> Obj:
        """Write a new node's status, and keep its conditions alive from now on.

        Returns:
            The node with that status.

        Raises:
            ApiError: the status was refused.
        """
        name = node["metadata"]["name"]
        written = self._write(name, status, agent)
        with self._lock:
            self._statuses[name] = status
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._renew_all, name="hollow nodes", daemon=True
                )
                self._thread.start()
        return written

    def close(self) -> None:
        """Renew no more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)

    def _write(self, name: str, status: Obj, agent: str = "") -> Obj:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"lastTransitionTime": now, **condition, "lastHeartbeatTime": now}
            for condition in status.get("conditions") or []
        ]
        found: Obj = self._connection.request(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"fieldValidation": "Strict"},
            {"status": {**status, "conditions": conditions} if conditions else status},
            content_type=MERGE_PATCH,
            agent=agent,
        )
        return found

    def _renew_all(self) -> None:
        while not self._stopping.wait(self._renewal):
            with self._lock:
                statuses = list(self._statuses.items())
            for name, status in statuses:
                conditions = {"conditions": status.get("conditions") or []}
                try:
                    self._write(name, conditions)
                except ApiError as error:
                    if error.code == 404:
                        with self._lock:
                            self._statuses.pop(name, None)
                except TargetError:
                    continue  # whoever uses the node meets the same trouble, and says so
