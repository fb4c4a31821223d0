"""Any API server as a target, whoever started it: the cluster side of the one seam."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conformance.clusters.base import ClusterAccess
from conformance.kubeapi.connection import Connection
from conformance.kubeapi.discovery import Discovery, Resource, list_objects
from conformance.kubeapi.informers import Following
from conformance.targets.base import Capabilities, Obj, Ref, TargetError
from conformance.targets.cluster.capabilities import Surveyor
from conformance.targets.cluster.cdi import claims_in
from conformance.targets.cluster.diagnosing import diagnose
from conformance.targets.cluster.health import Health
from conformance.targets.cluster.hollow import HollowNodes
from conformance.targets.cluster.ownership import owned
from conformance.targets.cluster.recorder import Recorder
from conformance.targets.cluster.scope import ClusterScope
from conformance.targets.cluster.snapshots import present_snapshot

FaultInjector = Callable[[str, str], None]
"""Called with a component's name and ``restart`` or ``kill``; returns when that is done."""


class ClusterTarget:
    """Implements `conformance.targets.base.Target` for one context of a kubeconfig file.

    Args:
        access: the cluster, as its source hands it over.
        name: the target's name in reports.
        driver: the DRA driver whose devices scenarios of the ``node`` tier use; None without one.
        cdi_roots: directories with the nodes' CDI specs, where they are on this machine.
        fault: restarts and kills components, where the cluster's source can.
        fault_components: the components that ``fault`` knows.
        record: follow all claims, slices, classes and nodes, so that `Scope.decisions` works.
        versions: versions of components that the API server does not tell (the driver's).

    Raises:
        ClusterUsageError: the kubeconfig or the context is wrong.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        name: str = "cluster",
        driver: str | None = None,
        cdi_roots: Sequence[Path] = (),
        fault: FaultInjector | None = None,
        fault_components: Sequence[str] = (),
        record: bool = False,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.access = access
        self.driver = driver
        self.connection = Connection.open(access.kubeconfig, access.context)
        self.discovery = Discovery(self.connection)
        self.shared = Following(self.connection)
        self.hollow = HollowNodes(self.connection)
        self.recorder = Recorder(self) if record else None
        self._cdi_roots = tuple(cdi_roots)
        self._fault = fault
        self._fault_components = tuple(fault_components) if fault else ()
        self._versions = dict(versions or {})
        self._lock = threading.Lock()
        self._capabilities: Capabilities | None = None
        self._scopes: set[ClusterScope] = set()
        self.health = Health(self.connection, access.watch, access.component_logs, self._wake)

    def capabilities(self) -> Capabilities:
        """See `Target.capabilities`; found out once.

        Raises:
            TargetError: no answer.
            ApiError: the server refuses to tell.
        """
        with self._lock:
            if self._capabilities is None:
                abilities = {f"fault:{component}" for component in self._fault_components}
                if self._cdi_roots:
                    abilities.add("cdi")
                self._capabilities = Surveyor(self.connection, self.discovery).survey(
                    nodes=self.access.nodes,
                    driver=self.driver,
                    abilities=abilities,
                    versions=self._versions,
                )
            return self._capabilities

    def scope(self, namespace: str) -> ClusterScope:
        """See `Target.scope`."""
        self.health.start()
        opened = ClusterScope(self, namespace)
        with self._lock:
            self._scopes.add(opened)
        return opened

    def forget(self, scope: ClusterScope) -> None:
        """Called by a scope that was closed."""
        with self._lock:
            self._scopes.discard(scope)

    def owned(self, run: str | None = None) -> list[Ref]:
        """See `Target.owned`."""
        return owned(self.connection, self.discovery, run)

    def now(self) -> float:
        """See `Target.now`: a monotonic clock."""
        return time.monotonic()

    def close(self) -> None:
        """See `Target.close`; scopes that are still open are closed too."""
        self.health.stop()
        with self._lock:
            scopes = list(self._scopes)
        for scope in scopes:
            scope.close()
        self.hollow.close()
        if self.recorder is not None:
            self.recorder.stop()
        self.shared.stop()
        self.connection.close()

    def _wake(self) -> None:
        with self._lock:
            scopes = list(self._scopes)
        for scope in scopes:
            scope.wake()

    # -- for scopes ------------------------------------------------------------------------------

    def list(self, resource: Resource, namespace: str | None = None, agent: str = "") -> list[Obj]:
        """All objects of a kind as the server has them now, ``apiVersion`` and ``kind`` set."""
        return list_objects(self.connection, resource, namespace, agent)

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """Claim uid -> CDI spec files that mention it."""
        if not self._cdi_roots:
            raise TargetError("this cluster's CDI specs are not on this machine (no ability cdi)")
        return claims_in(self._cdi_roots)

    def fault(self, component: str, action: str) -> None:
        """Restart or kill a component.

        Raises:
            TargetError: this cluster cannot do that.
        """
        if self._fault is None or component not in self._fault_components:
            known = ", ".join(self._fault_components) or "none"
            raise TargetError(
                f"this cluster cannot {action} {component}; components that it can: {known}"
            )
        self._fault(component, action)

    def snapshot(self, namespace: str) -> Obj:
        """All that allocations depend on now, with that namespace's pending claims."""
        return present_snapshot(self, namespace)

    def diagnostics(self, namespace: str) -> Mapping[str, str]:
        """What helps to see why a scenario in that namespace failed."""
        return diagnose(self, namespace)
