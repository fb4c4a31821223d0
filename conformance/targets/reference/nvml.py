"""Our own driver, called in-process on simulated GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from conformance.targets.reference.refusals import told_to_kubelet
from kube.observations import Health
from kube.values import Obj
from kubesim.nodes.driver import NodeDriver
from nvml_driver.cdi import specs
from nvml_driver.core import DriverCore
from nvml_driver.devices import slices
from nvml_driver.health.conditions import Condition, HealthReport, apply_health
from nvml_driver.model.inventory import Inventory
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions, Features


class NvmlDriver(NodeDriver):
    """Discovery, preparation and CDI specs are those of ``nvml_driver``.

    Args:
        root: where its files are, but for CDI specs.
        cdi: where those are.
        simulated: makes the simulated GPUs of a node that was just switched on.
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
        with told_to_kubelet():
            return self._core.prepare(claim)

    def unprepare(self, uid: str) -> None:
        with told_to_kubelet():
            self._core.unprepare(uid)

    def claim_of(self, spec_file: Path) -> str | None:
        return specs.claim_uid_of(spec_file, self.name)

    def restart(self) -> None:
        """What is on disk stays."""
        self._core = DriverCore(self._options, self._library)
        self._conditions = Conditions(self.name)
        self._publish({})

    def start_next(self) -> None:
        """Nothing but the disk joins the two."""
        self._first = (self._core, self._conditions)
        self.restart()

    def end_next(self) -> None:
        self._core, self._conditions = self._first
        self._publish(self._conditions.taints(self._core.inventory))

    def set_health(self, device: str, health: Health) -> None:
        self._conditions.set_health_of_gpu(self._core.inventory, device, health)
        self._publish(self._conditions.taints(self._core.inventory))

    def known_health(self, device: str) -> tuple[Health, str]:
        return self._conditions.health(self._core.inventory, device)

    def reboot(self) -> None:
        """Reboot; the node has another boot id, too.

        MIG devices do not outlive a reboot (NVIDIA's MIG User Guide, "Creating GPU Instances").
        """
        super().reboot()
        self._library = self._simulated()
        self._core.roots.boot_id.unlink()


_CONDITIONS: Final[Mapping[Health, Condition]] = {
    "Unhealthy": Condition(gpu="", kind="xid", since="", xid=79, message="XID 79"),
    "Unknown": Condition(gpu="", kind="unmonitored", since="", message="not watched"),
}
"""What NVML reports of such a GPU: an XID, or nothing any more."""


class Conditions:
    """The conditions of one node's GPUs since its driver was started; no event comes twice."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._condition_of_gpu: dict[str, Condition] = {}

    def set_health_of_gpu(self, inventory: Inventory, device: str, health: Health) -> None:
        """Set the health that the GPU of a device has from now on."""
        inventory_device = inventory.get(device)
        gpu = device if inventory_device is None else inventory_device.gpu_name
        self._condition_of_gpu.pop(gpu, None)
        if health != "Healthy":
            self._condition_of_gpu[gpu] = replace(_CONDITIONS[health], gpu=gpu)

    def health(self, inventory: Inventory, device: str) -> tuple[Health, str]:
        """Return the health of a device, and a message."""
        condition = self._applied(inventory).get(device)
        return (
            ("Unknown", "") if condition is None else (condition.health, condition.health_message)
        )

    def taints(self, inventory: Inventory) -> Mapping[str, Sequence[Obj]]:
        """Return device -> its taints, for those that have some."""
        entries = {
            inventory_device.name: slices.describe_device(inventory_device)
            for inventory_device in self._applied(inventory)
        }
        return {name: entry["taints"] for name, entry in entries.items() if "taints" in entry}

    def _applied(self, inventory: Inventory) -> Inventory:
        report = HealthReport(conditions=tuple(self._condition_of_gpu.values()))
        return apply_health(inventory, report, self._driver)
