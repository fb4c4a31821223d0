"""Keeps the drivers' ResourceSlices published: made again when deleted, restored when edited.

A driver built on upstream's library does the same (k8s.io/dynamic-resource-allocation/
resourceslice); so a scenario that interferes finds what it would find in a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.store import name_of, uid_of
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.nodes.driver import NodeDriver


class SlicePublisher:
    """Publishes what the drivers of some nodes have."""

    watches = frozenset({"Node", "ResourceSlice"})

    def __init__(self, cluster: Cluster, drivers: Mapping[str, NodeDriver | None]) -> None:
        self._store = cluster.store
        self._drivers = {node: driver for node, driver in drivers.items() if driver is not None}

    def sync(self) -> None:
        """One round over all nodes that are there."""
        for node_name, driver in self._drivers.items():
            node = self._store.get("Node", "", node_name)
            if node is None:
                continue
            for wanted in driver.slices:
                present = self._store.get("ResourceSlice", "", name_of(wanted))
                if present is None:
                    self._store.add(_owned(wanted, node))
                elif present["spec"] != wanted["spec"]:
                    self._store.replace({**present, "spec": wanted["spec"]})


def _owned(published: Obj, node: Obj) -> Obj:
    reference = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": name_of(node),
        "uid": uid_of(node),
        "controller": True,
    }
    meta = {**published["metadata"], "ownerReferences": [reference]}
    return {**published, "metadata": meta}
