"""The driver of a node: what the kubelet asks of it, and what it keeps published.

What a container gets is read back from the CDI specs that the driver wrote to disk, as a container
runtime does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from conformance.targets.base import Obj
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.store import name_of, uid_of
from nvml_driver.cdi import specs as cdi
from nvml_driver.model.prepared import PreparedDevice


class NodeDriver(ABC):
    """A driver on one node.

    Attributes:
        name: the driver's name in slices and allocations.
        slices: the ResourceSlices that it publishes.
    """

    def __init__(self, name: str, cdi_root: Path, slices: Sequence[Obj]) -> None:
        self.name = name
        self.slices = tuple(slices)
        self._cdi_root = cdi_root

    @property
    def devices(self) -> list[str]:
        """Names of the devices that it publishes."""
        found = [item["spec"].get("devices") or () for item in self.slices]
        return [device["name"] for devices in found for device in devices]

    @abstractmethod
    def prepare(self, claim: Obj) -> list[PreparedDevice]:
        """NodePrepareResources for one claim.

        Raises:
            DriverError: it could not be prepared.
        """

    @abstractmethod
    def unprepare(self, uid: str) -> None:
        """NodeUnprepareResources for one claim.

        Raises:
            DriverError: it could not be unprepared.
        """

    def edits(self, cdi_device_ids: Iterable[str]) -> cdi.ContainerEdits:
        """What a container with these CDI devices gets.

        Raises:
            DriverError: a device that no spec on disk defines.
        """
        return cdi.resolve(self._cdi_root, cdi_device_ids)

    def spec_files(self) -> Mapping[str, list[str]]:
        """Claim uid -> names of the CDI specs on disk that are for it."""
        found: dict[str, list[str]] = {}
        for path in sorted(self._cdi_root.glob("*.json")):
            uid = cdi.claim_uid_of(path, self.name)
            if uid is not None:
                found.setdefault(uid, []).append(path.name)
        return found


class SlicePublisher:
    """Keeps the drivers' ResourceSlices published: made again when deleted, restored when edited.

    A driver built on upstream's library does the same (k8s.io/dynamic-resource-allocation/
    resourceslice); so a scenario that interferes finds what it would find in a cluster.
    """

    watches = frozenset({"Node", "ResourceSlice"})

    def __init__(self, cluster: Cluster, drivers: Mapping[str, NodeDriver | None]) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._drivers = {node: driver for node, driver in drivers.items() if driver is not None}

    def sync(self) -> None:
        """One round over all nodes that are there."""
        if not self._cluster.gates.get("DynamicResourceAllocation"):
            return
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
