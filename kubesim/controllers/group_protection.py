"""Lets a PodGroup that is deleted go when none of its pods may run any more.

Follows pkg/controller/scheduling/podgroupprotection of Kubernetes 1.37.
"""

from __future__ import annotations

from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.admission import GROUP_PROTECTION
from kubesim.cluster import Cluster
from kubesim.store import name_of, namespace_of, retain_items


class PodGroupProtection:
    """Takes the finalizer, which admission has added, from groups that are not needed."""

    watches = frozenset({"Pod", "PodGroup"})

    def __init__(self, cluster: Cluster) -> None:
        self._store = cluster.store

    def sync(self) -> None:
        for group in self._store.all("PodGroup"):
            finalizers = group["metadata"].get("finalizers") or []
            is_protected = pods.is_deleted(group) and GROUP_PROTECTION in finalizers
            if is_protected and not self.has_active_pods(group):
                self._store.modify(group, _remove_protection)

    def has_active_pods(self, group: Obj) -> bool:
        """Return whether a pod of the group is there that has not ended."""
        return any(
            pods.group_name(pod) == name_of(group) and not pods.is_finished(pod)
            for pod in self._store.all("Pod", namespace_of(group))
        )


def _remove_protection(group: Obj) -> None:
    retain_items(group["metadata"], "finalizers", lambda name: name != GROUP_PROTECTION)
