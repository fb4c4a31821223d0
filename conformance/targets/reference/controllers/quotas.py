"""Notes in the status of each ResourceQuota what it limits, and what is used of that."""

from __future__ import annotations

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.quota import Usage
from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.store import namespace_of


class QuotaController:
    """The controller resourcequota."""

    watches = frozenset({"DeviceClass", "Pod", "ResourceClaim", "ResourceQuota"})

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._quotas = api.quotas

    def sync(self) -> None:
        """One round."""
        for quota in self._cluster.store.all("ResourceQuota"):
            hard = quota["spec"].get("hard") or {}
            used = self._quotas.used_in(namespace_of(quota))

            def note(new: Obj, hard: Obj = hard, used: Usage = used) -> None:
                new["status"] = {"hard": dict(hard), "used": {k: str(used.get(k, 0)) for k in hard}}

            self._cluster.store.modify(quota, note)
