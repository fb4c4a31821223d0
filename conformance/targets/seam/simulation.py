"""Devices that are not what they look like, as their driver itself says."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.targets.seam.values import Obj

SIMULATED = "dra-conformance.dev/simulated"
"""Attribute of devices that are simulated (nvml_driver sets it)."""


def simulated_devices(driver: str | None, slices: Iterable[Obj]) -> list[str]:
    """In words, that a driver's devices are simulated, where its slices say so themselves."""
    for item in slices:
        if item["spec"].get("driver") != driver:
            continue
        for device in item["spec"].get("devices") or []:
            # v1beta1 has the attributes one level deeper.
            attributes = (device.get("basic") or device).get("attributes") or {}
            if (attributes.get(SIMULATED) or {}).get("bool"):
                return [f"the devices of {driver}"]
    return []
