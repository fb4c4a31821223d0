"""Our own driver, called in-process on simulated GPUs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from conformance.targets.base import Obj
from conformance.targets.reference.nodes.driver import NodeDriver
from nvml_driver.core import DriverCore
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions, Features


class NvmlDriver(NodeDriver):
    """Discovery, preparation and CDI specs are those of ``nvml_driver``."""

    def __init__(
        self, name: str, node: str, root: Path, library: NvmlLibrary, features: Features
    ) -> None:
        options = DriverOptions(
            node_name=node,
            cdi_root=root / "cdi",
            state_dir=root / "state",
            driver_name=name,
            device_nodes="declare",
            durable=False,
            features=features,
        )
        self._start = partial(DriverCore, options, library)
        self._core = self._start()
        super().__init__(name, options.cdi_root, self._core.resource_slices())

    def prepare(self, claim: Obj) -> list[PreparedDevice]:
        """See `NodeDriver.prepare`."""
        return self._core.prepare(claim)

    def unprepare(self, uid: str) -> None:
        """See `NodeDriver.unprepare`."""
        self._core.unprepare(uid)

    def restart(self) -> None:
        """See `NodeDriver.restart`: what is on disk stays."""
        self._core = self._start()
