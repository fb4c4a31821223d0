"""ResourceSlices of an inventory: one pool, named like the node, split where the API wants it.

Limits: ``ResourceSliceMaxDevices`` is 128 (k8s.io/api/resource/v1/types.go). All slices of one
generation say how many there are, so that nobody takes a part of the pool for the whole.
"""

from __future__ import annotations

import hashlib
from typing import Any

from nvml_driver.inventory import Gpu, Inventory

MAX_DEVICES = 128
_MAX_NAME = 253  # a DNS subdomain
_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def quantity(count: int) -> str:
    """A count as Kubernetes writes a binary quantity: the largest unit that divides it.

    ``16106127360`` is ``15Gi``, ``1000`` is ``1000``.
    """
    unit = ""
    for larger in _UNITS:
        if count == 0 or count % 1024:
            break
        count, unit = count // 1024, larger
    return f"{count}{unit}"


def slice_name(driver_name: str, node_name: str, index: int) -> str:
    """A slice's name: the same each time, so that publishing again finds what is there."""
    name = f"{index:05d}-{driver_name}-{node_name}"
    if len(name) > _MAX_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:10]
        name = f"{name[: _MAX_NAME - 11].rstrip('-.')}-{digest}"
    return name


def device(gpu: Gpu) -> dict[str, Any]:
    """One entry of a slice's ``devices``."""
    entry: dict[str, Any] = {
        "name": gpu.name,
        "attributes": {name: value.to_api() for name, value in gpu.attributes.items()},
    }
    if gpu.capacity:
        entry["capacity"] = {
            name: {"value": quantity(count)} for name, count in gpu.capacity.items()
        }
    return entry


def resource_slices(
    inventory: Inventory, *, driver_name: str, node_name: str, generation: int = 1
) -> list[dict[str, Any]]:
    """The ResourceSlices (resource.k8s.io/v1) that publish an inventory; no devices, no slice.

    Args:
        inventory: the node's devices.
        driver_name: ``spec.driver``.
        node_name: ``spec.nodeName`` and the pool's name.
        generation: the pool's generation.
    """
    devices = [device(gpu) for gpu in inventory]
    parts = [devices[at : at + MAX_DEVICES] for at in range(0, len(devices), MAX_DEVICES)]
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": slice_name(driver_name, node_name, index)},
            "spec": {
                "driver": driver_name,
                "nodeName": node_name,
                "pool": {
                    "name": node_name,
                    "generation": generation,
                    "resourceSliceCount": len(parts),
                },
                "devices": part,
            },
        }
        for index, part in enumerate(parts)
    ]
