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

from conformance.kubeapi.connection import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Connection
from conformance.targets.seam.values import ApiError, Obj, TargetError

RENEWAL = 10.0
"""Seconds between two signs of life."""


class HollowNodes:
    """Writes the status of hollow nodes, and keeps them alive until they are deleted."""

    def __init__(self, connection: Connection, renewal: float = RENEWAL) -> None:
        self._connection = connection
        self._renewal = renewal
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def adopt(self, node: Obj, status: Obj, agent: str = "") -> Obj:
        """Write a new node's status, and renew the heartbeat of its Ready condition from now on.

        Returns:
            The node with that status.

        Raises:
            ApiError: the status was refused.
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
        """Stop renewing."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(10)

    def _patch(self, name: str, status: Obj, content_type: str, agent: str = "") -> Obj:
        found: Obj = self._connection.request(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"fieldValidation": "Strict"},
            {"status": status},
            content_type=content_type,
            agent=agent,
        )
        return found

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
