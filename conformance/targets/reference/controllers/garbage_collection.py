"""Collects what lost its owners, and empties namespaces that are being deleted."""

from __future__ import annotations

from typing import Final

from conformance.targets.base import Obj
from conformance.targets.reference import pods
from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.resources import KINDS
from conformance.targets.reference.store import name_of

_ORPHAN_SECONDS: Final = 60
"""How long a pod outlives its node: 40 s of quarantine, looked at every 20 s (podgc)."""


class GarbageCollector:
    """Deletes objects all of whose owners are gone, and pods of nodes that are gone."""

    watches = frozenset(KINDS)

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self._orphaned_at: dict[str, float] = {}

    def restart(self) -> None:
        """See `Remembers.restart`: pods of gone nodes are waited for anew."""
        self._orphaned_at.clear()

    def sync(self) -> None:
        """One round."""
        for obj in self._store.everything():
            if not pods.is_deleted(obj) and self.is_ownerless(obj):
                self._api.delete_stored(obj)
        self._collect_orphaned_pods()

    def is_ownerless(self, obj: Obj) -> bool:
        """An object that has owners, all of which are gone."""
        owners = obj["metadata"].get("ownerReferences")
        return bool(owners) and not any(map(self._exists, owners))

    def _exists(self, owner: Obj) -> bool:
        found = self._store.by_uid(owner["uid"])
        return found is not None and found["kind"] == owner["kind"]

    def _collect_orphaned_pods(self) -> None:
        waiting = {}
        for pod in self._store.all("Pod"):
            node = pod["spec"].get("nodeName")
            if not node or self._store.get("Node", "", node) is not None:
                continue
            uid = pod["metadata"]["uid"]
            due = self._orphaned_at.get(uid)
            if due is None:
                due = self._cluster.clock.wake_in(_ORPHAN_SECONDS)
            if self._cluster.clock.now >= due:
                self._api.delete_stored(pod, 0)
            else:
                waiting[uid] = due
        self._orphaned_at = waiting


class NamespaceController:
    """Deletes the content of a namespace that is being deleted, then the namespace."""

    watches = frozenset(KINDS)

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._store = cluster.store
        self._api = api

    def sync(self) -> None:
        """One round."""
        for namespace in self._store.all("Namespace"):
            if not pods.is_deleted(namespace):
                continue
            content = [
                obj
                for kind in KINDS.values()
                if kind.namespaced
                for obj in self._store.all(kind.name, name_of(namespace))
            ]
            if not content:
                self._store.remove(namespace)
            for obj in content:
                if not pods.is_deleted(obj):
                    self._api.delete_stored(obj)
