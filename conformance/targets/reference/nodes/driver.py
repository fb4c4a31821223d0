"""The driver of a node: our own NVML-backed one, called in-process on simulated GPUs.

Discovery, preparation and CDI specs are the driver's; what a container gets is read back from the
specs on disk, as a container runtime does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.store import clone
from conformance.targets.reference.faults import Fault
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
        faults: frozenset[Fault],
        features: Features,
    ) -> None:
        self.name = name
        self._faults = faults
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
        if Fault.WRONG_DEVICE_IN_CONTAINER in self._faults:
            claim = self._with_other_devices(claim)
        return self._core.prepare(claim)

    def unprepare(self, uid: str) -> None:
        """NodeUnprepareResources for one claim.

        Raises:
            DriverError: it could not be unprepared.
        """
        if Fault.LEAK_CDI not in self._faults:
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

    def _with_other_devices(self, claim: Obj) -> Obj:
        changed, names = clone(claim), self.devices
        for result in changed["status"]["allocation"]["devices"]["results"]:
            if result["device"] in names:
                index = names.index(result["device"])
                result["device"] = names[(index + 1) % len(names)]
        return changed
