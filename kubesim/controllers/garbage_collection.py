"""Collects what lost its owners, and empties namespaces that are being deleted."""

from __future__ import annotations

from typing import Final

from kube.errors import ApiError
from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.deletion import FOREGROUND, ORPHAN
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster
from kubesim.resources import KINDS, resolve_kind
from kubesim.store import name_of, namespace_of, retain_items, uid_of
from kubesim.views import View, is_owned_or_deleted

_ORPHAN_SECONDS: Final = 60
"""How long a pod outlives its node: 40 s of quarantine, looked at every 20 s (podgc)."""


class GarbageCollector:
    """Deletes objects all of whose owners are gone, and pods of nodes that are gone.

    An object that is being deleted it lets go once those that it owns are gone (foreground), or
    own themselves (orphan). Follows pkg/controller/garbagecollector/garbagecollector.go.
    """

    watches = frozenset(KINDS)

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self._orphaned_at: dict[str, float] = {}
        self._candidates = View(cluster.store, KINDS, is_owned_or_deleted)

    def restart(self) -> None:
        """Forget since when pods of gone nodes are waited for."""
        self._orphaned_at.clear()

    def sync(self) -> None:
        for listed in self._candidates.list_objects():
            obj = self._store.by_uid(uid_of(listed))
            if obj is None:
                continue  # It went with one before it.
            finalizers = obj["metadata"].get("finalizers") or []
            if not pods.is_deleted(obj):
                if self.is_ownerless(obj):
                    self._api.delete_stored(obj)
                else:
                    self.drop_gone_owners(obj)
            elif ORPHAN in finalizers:
                self.orphan_owned(obj)
            elif FOREGROUND in finalizers:
                self.delete_owned(obj)
        self._collect_orphaned_pods()

    def orphan_owned(self, owner: Obj) -> None:
        """Let an object go, and none of those that it owns."""
        for obj in self._list_owned(owner):
            self._store.modify(obj, lambda new: _remove_owner(new, owner))
        self._store.modify(owner, lambda new: new["metadata"]["finalizers"].remove(ORPHAN))

    def delete_owned(self, owner: Obj) -> None:
        """Delete what an object owns; let it go when nothing is left for which it must wait."""
        owned = self._list_owned(owner)
        for obj in owned:
            if any(map(self._is_solid_owner, obj["metadata"]["ownerReferences"])):
                self._store.modify(obj, lambda new: _remove_owner(new, owner))
            elif not pods.is_deleted(obj):
                policy = "Foreground" if self._list_owned(obj) else None
                self._api.delete_stored(obj, None, policy)
        if not any(_blocks_owner_deletion(obj, owner) for obj in owned):
            self._store.modify(owner, lambda new: new["metadata"]["finalizers"].remove(FOREGROUND))

    def _list_owned(self, owner: Obj) -> list[Obj]:
        uid = uid_of(owner)
        return [
            obj
            for obj in self._candidates.list_objects()
            if any(
                reference["uid"] == uid
                for reference in obj["metadata"].get("ownerReferences") or []
            )
        ]

    def _is_solid_owner(self, reference: Obj) -> bool:
        """Return whether an owner is there, and does not wait for what it owns."""
        owner = self._store.by_uid(reference["uid"])
        if owner is None:
            return False
        meta = owner["metadata"]
        return not pods.is_deleted(owner) or FOREGROUND not in (meta.get("finalizers") or [])

    def is_ownerless(self, obj: Obj) -> bool:
        """Return whether an object has owners, all of which are known to be gone."""
        existing_owners = self.list_existing_owners(obj)
        return existing_owners == [] and bool(obj["metadata"].get("ownerReferences"))

    def drop_gone_owners(self, obj: Obj) -> None:
        """Take the references to owners that are gone from an object that has others."""
        owners = obj["metadata"].get("ownerReferences") or []
        if len(owners) < 2:  # which is what most have, and is looked at in each sync
            return
        kept = self.list_existing_owners(obj)
        if kept and len(kept) < len(owners):
            self._store.modify(obj, lambda new: new["metadata"].update(ownerReferences=kept))

    def list_existing_owners(self, obj: Obj) -> list[Obj] | None:
        """Return the references to owners that are there; None where one cannot be looked up.

        That is one of a kind that is not served, such as a custom resource whose definition is
        not installed, and one with a namespace whose dependent has none. Its dependent stays
        (``isDangling`` and ``classifyReferences``: such an error is tried again for ever).
        """
        existing_owners = []
        for owner in obj["metadata"].get("ownerReferences") or []:
            try:
                kind = resolve_kind(owner["apiVersion"], owner["kind"], self._cluster.served_kinds)
            except ApiError:
                return None
            if kind.namespaced and not namespace_of(obj):
                return None
            namespace = namespace_of(obj) if kind.namespaced else ""
            stored_owner = self._store.get(kind.name, namespace, owner["name"])
            if stored_owner is not None and uid_of(stored_owner) == owner["uid"]:
                existing_owners.append(owner)
        return existing_owners

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


def _blocks_owner_deletion(obj: Obj, owner: Obj) -> bool:
    """Return whether a foreground deletion of an owner waits for it (``blockOwnerDeletion``)."""
    references = obj["metadata"]["ownerReferences"]
    return any(
        reference["uid"] == uid_of(owner) and reference.get("blockOwnerDeletion")
        for reference in references
    )


def _remove_owner(obj: Obj, owner: Obj) -> None:
    retain_items(obj["metadata"], "ownerReferences", lambda one: one["uid"] != uid_of(owner))


class NamespaceController:
    """Deletes the content of a namespace that is being deleted, then the namespace."""

    watches = frozenset(KINDS)

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._store = cluster.store
        self._api = api

    def sync(self) -> None:
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
