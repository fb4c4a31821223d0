"""Our own driver, called in-process on simulated GPUs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conformance.scenario.stimulus import Health
from conformance.targets.base import Obj
from conformance.targets.reference.nodes.conditions import Conditions
from conformance.targets.reference.nodes.driver import NodeDriver
from nvml_driver.core import DriverCore
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions, Features


class NvmlDriver(NodeDriver):
    """Discovery, preparation and CDI specs are those of ``nvml_driver``.

    Args:
        name: the driver's.
        node: the node's name.
        root: where its files are, but for CDI specs.
        cdi: where those are.
        simulated: makes the simulated GPUs of a node that was just switched on.
        features: what it publishes.
        prefix: stands before the names of what containers get.
    """

    def __init__(
        self,
        name: str,
        node: str,
        root: Path,
        cdi: Path,
        simulated: Callable[[], NvmlLibrary],
        features: Features,
        prefix: str = "",
    ) -> None:
        options = DriverOptions(
            node_name=node,
            cdi_root=cdi,
            state_dir=root / "state",
            driver_name=name,
            device_nodes="declare",
            device_metadata=True,
            container_prefix=prefix,
            durable=False,
            features=features,
        )
        self._options, self._simulated = options, simulated
        self._library = simulated()
        self._core = DriverCore(options, self._library)
        super().__init__(name, options.cdi_root, self._core.resource_slices())
        self._conditions = Conditions(name)
        self._first = (self._core, self._conditions)

    def prepare(self, claim: Obj) -> list[PreparedDevice]:
        """See `NodeDriver.prepare`."""
        return self._core.prepare(claim)

    def unprepare(self, uid: str) -> None:
        """See `NodeDriver.unprepare`."""
        self._core.unprepare(uid)

    def restart(self) -> None:
        """See `NodeDriver.restart`: what is on disk stays."""
        self._core = DriverCore(self._options, self._library)
        self._conditions = Conditions(self.name)
        self._publish({})

    def start_next(self) -> None:
        """See `NodeDriver.start_next`: nothing but the disk joins the two."""
        self._first = (self._core, self._conditions)
        self.restart()

    def end_next(self) -> None:
        """See `NodeDriver.end_next`."""
        self._core, self._conditions = self._first
        self._publish(self._conditions.taints(self._core.inventory))

    def set_health(self, device: str, health: Health) -> None:
        """See `NodeDriver.set_health`."""
        self._conditions.tell(self._core.inventory, device, health)
        self._publish(self._conditions.taints(self._core.inventory))

    def _known_health(self, device: str) -> tuple[Health, str]:
        return self._conditions.health(self._core.inventory, device)

    def reboot(self) -> None:
        """See `NodeDriver.reboot`: the node has another boot id, too.

        MIG devices do not outlive a reboot (NVIDIA's MIG User Guide, "Creating GPU Instances").
        """
        super().reboot()
        self._library = self._simulated()
        self._core.roots.boot_id.unlink()
