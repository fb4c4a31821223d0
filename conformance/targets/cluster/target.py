"""Any API server as a target, whoever started it: the cluster side of the one seam."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from conformance.seam.abilities import Ability
from conformance.seam.overlaps import ClaimHolders
from conformance.seam.values import Capabilities, FreeDevices
from conformance.targets.cluster.capabilities import discover_capabilities
from conformance.targets.cluster.creator import HollowNodes
from conformance.targets.cluster.health import Health
from conformance.targets.cluster.ownership import list_owned
from conformance.targets.cluster.published import PublishedDevices
from conformance.targets.cluster.reach import ClusterFaults, Reach, Shared
from conformance.targets.cluster.recorder import Recorder, attach_listener
from conformance.targets.cluster.scope import ClusterScope
from kube.api import Api
from kube.connection import Connection
from kube.errors import ApiError
from kube.informers import InformerFactory
from kube.values import Ref
from localkube.base import ClusterAccess


class ClusterTarget:
    """Implements `conformance.seam.scope.Target` for one context of a kubeconfig file.

    Args:
        driver: the DRA driver whose devices scenarios of the ``node`` tier use; None without one.
        other_driver: another driver on the same nodes; None without one.
        other_devices: how many it has on each node, where it is started when it is needed.
        reach: what the cluster's source can reach of its nodes and components.
        record: follow all claims, slices, classes and nodes, so that `Scope.decisions` works.
        only_read: find out what the cluster can do by reading alone.
        double_allocation: scenarios may give one device to two claims.
        scheduler: Kubernetes version of the scheduler; empty if it is the API server's.

    Raises ClusterUsageError: the kubeconfig or the context is wrong.
    """

    name = "cluster"

    def __init__(
        self,
        access: ClusterAccess,
        *,
        driver: str | None = None,
        other_driver: str | None = None,
        other_devices: int = 0,
        reach: Reach | None = None,
        record: bool = False,
        only_read: bool = False,
        double_allocation: bool = False,
        scheduler: str = "",
    ) -> None:
        self.access = access
        self._scheduler = scheduler
        self.driver = driver
        self._other = other_driver
        self._other_devices = other_devices
        self._only_read = only_read
        self._double_allocation = double_allocation
        self._lock = threading.Lock()
        self._capabilities: Capabilities | None = None
        self._scopes: list[ClusterScope] = []
        connection = Connection.open(access.kubeconfig, access.context)
        self.api = Api(connection)
        self._watches = InformerFactory(connection, "recorder")
        self._watching = False
        self.recorder = Recorder(self.api, self._watches, self.capabilities) if record else None
        reach = reach or Reach()
        health = Health(connection, access.watch, access.component_logs, self._wake)
        self._shared = Shared(
            api=self.api,
            capabilities=self.capabilities,
            informers=InformerFactory(connection),
            hollow=HollowNodes(connection),
            health=health,
            recorder=self.recorder,
            claims=ClaimHolders(),
            published=PublishedDevices([driver, other_driver]),
            logs=access.component_logs,
            reach=reach,
            faults=ClusterFaults(reach, health, self.recorder),
        )

    def capabilities(self) -> Capabilities:
        """Return what the cluster can do, found out once. Raises TargetError or ApiError."""
        with self._lock:
            if self._capabilities is None:
                abilities = self._shared.reach.abilities
                if self._double_allocation:
                    abilities.add(Ability.DOUBLE_ALLOCATION)
                discovered = discover_capabilities(
                    self.api,
                    nodes=self.access.nodes,
                    driver=self.driver,
                    abilities=abilities,
                    versions=self.access.versions,
                    scheduler=self._scheduler,
                    only_read=self._only_read,
                )
                on_each = dict.fromkeys(discovered.nodes, self._other_devices)
                self._capabilities = replace(
                    discovered,
                    other_driver=self._other,
                    free=FreeDevices(other_by_node=on_each if self._other_devices else {}),
                )
            return self._capabilities

    def scope(self, namespace: str) -> ClusterScope:
        self._shared.health.start()
        self._watch()
        opened = ClusterScope(self._shared, namespace)
        with self._lock:
            self._scopes.append(opened)
        return opened

    def owned(self, run: str | None = None, *, every_kind: bool = False) -> list[Ref]:
        return list_owned(self.api, run, every_kind=every_kind)

    def now(self) -> float:
        return time.monotonic()

    def peak_memory(self) -> int | None:
        control = self._shared.reach.control
        return None if control is None else control.peak_memory()

    def close(self) -> None:
        """Close the target and its scopes that are still open."""
        self._shared.health.stop()
        with self._lock:
            scopes = list(self._scopes)
        for scope in scopes:
            scope.close()
        self._shared.hollow.close()
        self._watches.stop()
        self._shared.informers.stop()
        self.api.connection.close()

    def _watch(self) -> None:
        """Begin to look for devices in two claims and, with a driver, for what it publishes.

        Where there can be claims at all.
        """
        with self._lock:
            if self._watching:
                return
            try:
                version = self.api.discovery.dra_version()
                claims = self.api.discovery.find(version, "ResourceClaim")
                slices = self.api.discovery.find(version, "ResourceSlice")
            except ApiError as error:
                if error.code == 404:
                    return
                raise
            attach_listener(self._watches.informer(claims, None), self._shared.claims.hear)
            if self.driver is not None:
                attach_listener(
                    self._shared.informers.informer(slices, None), self._shared.published.hear
                )
            self._watching = True

    def _wake(self) -> None:
        with self._lock:
            scopes = list(self._scopes)
        for scope in scopes:
            scope.wake()
