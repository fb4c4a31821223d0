"""The CDI spec of one claim: which device files and variables its containers get.

The variables are this driver's own contract with what runs in a container:

=============================================  ====================================================
``DRA_RESOURCE_DRIVER_NAME``                   the driver's name
``KUBERNETES_NODE_NAME``                       the node
``NVIDIA_VISIBLE_DEVICES=void``                keeps NVIDIA's container runtime from adding GPUs
``GPU_DEVICE_<minor>``                         the device's name in its pool, ``gpu-<minor>``
``GPU_DEVICE_<minor>_RESOURCE_CLAIM``          uid of the claim
``GPU_DEVICE_<minor>_UUID``                    the GPU's UUID, if NVML tells it
``GPU_DEVICE_<minor>_SHARING_STRATEGY``, ...   the opaque configuration (see ``config``)
``DRA_ADMIN_ACCESS=true``                      for an allocation with admin access
=============================================  ====================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nvml_driver import cdi
from nvml_driver.errors import PrepareError
from nvml_driver.inventory import Gpu, Inventory
from nvml_driver.prepared import ClaimRecord, PreparedDevice
from nvml_driver.simulated.node import NULL_DEVICE

CONTROL_DEVICE = "nvidiactl"
OPTIONAL_DEVICES = ("nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
NODE_ANNOTATION = "dra-conformance.dev/node"
DECLARED_ANNOTATION = "dra-conformance.dev/device-nodes"


def device_file(gpu: Gpu) -> str:
    """The GPU's file name in ``/dev``."""
    return f"nvidia{gpu.minor}"


class SpecBuilder:
    """Builds specs for one node's inventory."""

    def __init__(
        self,
        inventory: Inventory,
        *,
        driver_name: str,
        node_name: str,
        device_root: Path,
        declared_only: bool,
    ) -> None:
        """Build for an inventory.

        Args:
            inventory: the node's devices.
            driver_name: gives vendor and a variable.
            node_name: gives an annotation and a variable.
            device_root: where the device files are.
            declared_only: no device files exist, say type and numbers instead.
        """
        self._inventory = inventory
        self._driver_name = driver_name
        self._node_name = node_name
        self._device_root = device_root
        self._declared_only = declared_only

    def build(self, record: ClaimRecord) -> dict[str, Any]:
        """The spec for a claim.

        Raises:
            PrepareError: a device is no longer there, or its device file is missing.
        """
        annotations = {NODE_ANNOTATION: self._node_name}
        if self._declared_only:
            annotations[DECLARED_ANNOTATION] = "declared"
        common = [CONTROL_DEVICE]
        if not self._declared_only and not self._inventory.simulated:
            common += [name for name in OPTIONAL_DEVICES if (self._device_root / name).exists()]
        return {
            "cdiVersion": cdi.VERSION,
            "kind": f"{cdi.vendor(self._driver_name)}/{cdi.CLASS}",
            "annotations": annotations,
            "devices": [self._device(record, device) for device in record.devices],
            "containerEdits": {
                "env": [
                    f"DRA_RESOURCE_DRIVER_NAME={self._driver_name}",
                    f"KUBERNETES_NODE_NAME={self._node_name}",
                    "NVIDIA_VISIBLE_DEVICES=void",
                ],
                "deviceNodes": [self._node(name) for name in common],
            },
        }

    def _device(self, record: ClaimRecord, prepared: PreparedDevice) -> dict[str, Any]:
        gpu = self._inventory.get(prepared.device_name)
        if gpu is None:
            raise PrepareError(f"{record}: device {prepared.device_name} is gone from this node")
        variable = f"GPU_DEVICE_{gpu.minor}"
        env = [f"{variable}={gpu.name}", f"{variable}_RESOURCE_CLAIM={record.uid}"]
        if gpu.uuid is not None:
            env.append(f"{variable}_UUID={gpu.uuid}")
        env += [f"{variable}_{suffix}={value}" for suffix, value in prepared.settings]
        if prepared.admin_access:
            env.append("DRA_ADMIN_ACCESS=true")
        [cdi_id] = prepared.cdi_device_ids
        return {
            "name": cdi_id.partition("=")[2],
            "containerEdits": {"env": env, "deviceNodes": [self._node(device_file(gpu))]},
        }

    def _node(self, name: str) -> dict[str, Any]:
        path = f"/dev/{name}"
        if self._declared_only:
            major, minor = NULL_DEVICE
            return {"path": path, "type": "c", "major": major, "minor": minor, "permissions": "rw"}
        file = self._device_root / name
        if not file.is_char_device():
            raise PrepareError(
                f"device file {file} is missing; a container would start without its GPU"
            )
        return {"path": path, "hostPath": str(file), "permissions": "rw"}
