"""The driver of a node: our own NVML-backed one, called in-process on simulated GPUs.

Discovery, preparation and CDI specs are the driver's; what a container gets is read back from the
specs on disk, as a container runtime does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.store import name_of, uid_of
from conformance.targets.reference.cluster import Cluster
from nvml_driver.cdi import specs as cdi
from nvml_driver.core import DriverCore
from nvml_driver.features import Features
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions


class NodeDriver:
    """One node's driver, with its files below ``root``.

    Attributes:
        name: the driver's name in slices and allocations.
    """

    def __init__(
        self,
        name: str,
        node: str,
        root: Path,
        library: NvmlLibrary,
        features: Features,
    ) -> None:
        self.name = name
        self._core = DriverCore(
            DriverOptions(
                node_name=node,
                cdi_root=root / "cdi",
                state_dir=root / "state",
                driver_name=name,
                device_nodes="declare",
                durable=False,
                features=features,
            ),
            library,
        )
        self.slices: tuple[Obj, ...] = tuple(self._core.resource_slices())

    @property
    def devices(self) -> list[str]:
        """Names of the devices that it publishes."""
        found = [item["spec"].get("devices") or () for item in self.slices]
        return [device["name"] for devices in found for device in devices]

    def prepare(self, claim: Obj) -> list[PreparedDevice]:
        """NodePrepareResources for one claim.

        Raises:
            DriverError: it could not be prepared.
        """
        return self._core.prepare(claim)

    def unprepare(self, uid: str) -> None:
        """NodeUnprepareResources for one claim.

        Raises:
            DriverError: it could not be unprepared.
        """
        self._core.unprepare(uid)

    def edits(self, cdi_device_ids: Iterable[str]) -> cdi.ContainerEdits:
        """What a container with these CDI devices gets.

        Raises:
            DriverError: a device that no spec on disk defines.
        """
        return cdi.resolve(self._core.options.cdi_root, cdi_device_ids)

    def spec_files(self) -> Mapping[str, list[str]]:
        """Claim uid -> names of the CDI specs on disk that are for it."""
        found: dict[str, list[str]] = {}
        for path in sorted(self._core.options.cdi_root.glob("*.json")):
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
