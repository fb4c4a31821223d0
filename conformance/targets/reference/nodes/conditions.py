"""What is the matter with the simulated GPUs of a node, as if NVML had told it.

What that means for devices, taints and health, is decided by ``nvml_driver``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from conformance.scenario.stimulus import Health
from conformance.targets.base import Obj
from nvml_driver.devices import slices
from nvml_driver.health.conditions import Condition, HealthReport, apply_health
from nvml_driver.model.inventory import Inventory

_CONDITIONS: Final[Mapping[Health, Condition]] = {
    "Unhealthy": Condition(gpu="", kind="xid", since="", xid=79, message="XID 79"),
    "Unknown": Condition(gpu="", kind="unmonitored", since="", message="not watched"),
}
"""What NVML tells of a GPU that gets so: an XID, or nothing any more."""


class Conditions:
    """Of the GPUs of one node, since its driver was started: events are not told twice.

    Args:
        driver: its name, the domain of the taints' keys.
    """

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._found: dict[str, Condition] = {}

    def tell(self, inventory: Inventory, device: str, health: Health) -> None:
        """The GPU that has a device is healthy or not from now on."""
        known = inventory.get(device)
        gpu = device if known is None else known.gpu_name
        self._found.pop(gpu, None)
        if health != "Healthy":
            self._found[gpu] = replace(_CONDITIONS[health], gpu=gpu)

    def health(self, inventory: Inventory, device: str) -> tuple[Health, str]:
        """Of a device, with a message."""
        found = self._applied(inventory).get(device)
        return ("Unknown", "") if found is None else (found.health, found.health_message)

    def taints(self, inventory: Inventory) -> Mapping[str, Sequence[Obj]]:
        """Device -> its taints, of those that have some."""
        entries = {each.name: slices.device(each) for each in self._applied(inventory)}
        return {name: entry["taints"] for name, entry in entries.items() if "taints" in entry}

    def _applied(self, inventory: Inventory) -> Inventory:
        report = HealthReport(conditions=tuple(self._found.values()))
        return apply_health(inventory, report, self._driver)
