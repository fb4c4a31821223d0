"""Builds the CDI spec of one claim: which device files and variables its containers get.

The variables are this driver's own contract with what runs in a container. ``<G>`` is
``GPU_DEVICE_<minor>`` for a full GPU, ``GPU_DEVICE_<minor>_MIG_<GPU instance>`` for a MIG device of
that GPU, and ``GPU_DEVICE_VFIO_<IOMMU group>`` for a GPU that is passed to a virtual machine:

================================  =================================================================
``DRA_RESOURCE_DRIVER_NAME``      the driver's name
``KUBERNETES_NODE_NAME``          the node
``NVIDIA_VISIBLE_DEVICES=void``   keeps NVIDIA's container runtime from adding GPUs
``<G>``                           the device's name in its pool, ``gpu-<minor>`` for a full GPU
``<G>_RESOURCE_CLAIM``            uid of the claim
``<G>_UUID``                      the device's UUID, if NVML reports it
``<G>_SHARING_STRATEGY``, ...     the opaque configuration (see ``config``)
``DRA_ADMIN_ACCESS=true``         for an allocation with admin access
================================  =================================================================

Device files: ``/dev/nvidiactl`` and, where the node has them, those of CUDA's unified memory;
``/dev/nvidia<minor>``; for a MIG device also the two capabilities of its instances in
``/dev/nvidia-caps``; for VFIO the group's file, or the device's own where the configuration prefers
IOMMUFD and the node has it, and, unless the configuration says otherwise, the control files. On
real GPUs the libraries and tools of the driver, too (see ``driver_libraries``), on simulated ones a
small ``nvidia-smi`` (see ``nvml_driver.simulated.smi``).

With a prefix (option ``container_prefix``) variables begin with it, in capitals, and device files
are in a directory of that name; so two instances of this driver hide nothing of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nvml_driver.cdi import specs as cdi
from nvml_driver.cdi.driver_libraries import DriverLibraries
from nvml_driver.cdi.metadata import MetadataFiles, base_requests, container_path
from nvml_driver.errors import PrepareError
from nvml_driver.model.inventory import Device, Inventory, MigInstance
from nvml_driver.model.prepared import ClaimRecord, PreparedDevice
from nvml_driver.simulated import smi
from nvml_driver.simulated.node import device_number

CONTROL_DEVICE = "nvidiactl"
OPTIONAL_DEVICES = ("nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
VFIO_CONTROL_DEVICE = "vfio/vfio"
IOMMUFD_CONTROL_DEVICE = "iommu"
NODE_ANNOTATION = "dra-conformance.dev/node"
DECLARED_ANNOTATION = "dra-conformance.dev/device-nodes"


def device_files(device: Device, created: MigInstance | None = None) -> list[str]:
    """Return a device's file names below ``/dev``; ``created``: the MIG device of a partition."""
    if device.kind == "vfio":
        return [] if device.iommu_group is None else [f"vfio/{device.iommu_group}"]
    instance = created or device.instance
    capabilities = () if instance is None else (instance.gi_capability, instance.ci_capability)
    return [
        f"nvidia{device.minor}",
        *(f"nvidia-caps/nvidia-cap{number}" for number in capabilities if number is not None),
    ]


def name_variable(device: Device, created: MigInstance | None = None) -> str:
    """Return ``<G>`` (see above), the name that the device's variables begin with."""
    if device.kind == "vfio":
        return f"GPU_DEVICE_VFIO_{device.iommu_group}"
    instance = created or device.instance
    suffix = "" if instance is None else f"_MIG_{instance.gi_id}"
    return f"GPU_DEVICE_{device.minor}{suffix}"


class SpecBuilder:
    """Builds the specs of claims for one node's inventory."""

    def __init__(
        self,
        inventory: Inventory,
        *,
        driver_name: str,
        node_name: str,
        device_root: Path,
        declared_only: bool,
        metadata: MetadataFiles | None = None,
        libraries: DriverLibraries | None = None,
        simulated_smi: Path | None = None,
        prefix: str = "",
    ) -> None:
        """Build for an inventory.

        Args:
            declared_only: no device files exist, say type and numbers instead.
            metadata: mount these files, None: none.
            libraries: give these to containers, None: none.
            simulated_smi: give this nvidia-smi to containers, None: none.
            prefix: stands before the names of what containers get.
        """
        self._inventory = inventory
        self._driver_name = driver_name
        self._node_name = node_name
        self._device_root = device_root
        self._declared_only = declared_only
        self._metadata = metadata
        self._libraries = libraries
        self._simulated_smi = simulated_smi
        self._prefix = prefix

    def build(self, record: ClaimRecord) -> dict[str, Any]:
        """Return the spec for a claim. Raises PrepareError."""
        annotations = {NODE_ANNOTATION: self._node_name}
        if self._declared_only:
            annotations[DECLARED_ANNOTATION] = "declared"
        devices = [self._describe_device(record, device) for device in record.devices]
        if self._metadata is not None:
            devices += [
                self._describe_metadata(record, request, self._metadata)
                for request in base_requests(record)
            ]
        common = self._common_edits(record)
        for edits in (common, *(device["containerEdits"] for device in devices)):
            self._add_prefix(edits)
        return {
            "cdiVersion": cdi.VERSION,
            "kind": f"{cdi.vendor_name(self._driver_name)}/{cdi.CLASS}",
            "annotations": annotations,
            "devices": devices,
            "containerEdits": common,
        }

    def _add_prefix(self, edits: dict[str, Any]) -> None:
        """Let variables and device files begin with the prefix, where there is one."""
        if not self._prefix:
            return
        if "env" in edits:
            edits["env"] = [f"{self._prefix.upper()}_{text}" for text in edits["env"]]
        for node in edits.get("deviceNodes", ()):
            node["path"] = node["path"].replace("/dev/", f"/dev/{self._prefix}/", 1)

    def metadata_device_id(self, uid: str, request: str) -> str:
        """Return the CDI device that mounts a request's metadata.

        No other device's name has underscores.
        """
        return cdi.qualified_name(self._driver_name, f"{uid}_metadata_{request}")

    def _common_edits(self, record: ClaimRecord) -> dict[str, Any]:
        """Return what containers get once, whichever devices of the claim they have."""
        env = [
            f"DRA_RESOURCE_DRIVER_NAME={self._driver_name}",
            f"KUBERNETES_NODE_NAME={self._node_name}",
            "NVIDIA_VISIBLE_DEVICES=void",
        ]
        devices = [self._inventory.get(device.device_name) for device in record.devices]
        if all(device is not None and device.kind == "vfio" for device in devices):
            return {"env": env}  # NVIDIA's kernel driver has nothing to do with them
        names = [CONTROL_DEVICE]
        if not self._declared_only and not self._inventory.simulated:
            names += [name for name in OPTIONAL_DEVICES if (self._device_root / name).exists()]
        driver = {} if self._libraries is None else self._libraries.find_edits()
        if self._simulated_smi is not None:
            tool = _read_only(self._simulated_smi, smi.CONTAINER_PATH)
            driver = {**driver, "mounts": [*driver.get("mounts", ()), tool]}
        return {
            **driver,
            "env": [*env, *driver.get("env", ())],
            "deviceNodes": [self._describe_node(name) for name in names],
        }

    def _describe_device(self, record: ClaimRecord, prepared: PreparedDevice) -> dict[str, Any]:
        device = self._inventory.get(prepared.device_name)
        if device is None or not prepared.is_still(device):
            raise PrepareError(f"{record}: device {prepared.device_name} is gone from this node")
        if device.kind == "mig-partition" and prepared.made is None:
            raise PrepareError(f"{record}: MIG device {prepared.device_name} was not made")
        created = prepared.made
        uuid = created.uuid if created is not None else device.uuid
        prefix = name_variable(device, created)
        env = [f"{prefix}={device.name}", f"{prefix}_RESOURCE_CLAIM={record.uid}"]
        if uuid is not None:
            env.append(f"{prefix}_UUID={uuid}")
        env += [f"{prefix}_{suffix}={value}" for suffix, value in prepared.settings]
        if prepared.admin_access:
            env.append("DRA_ADMIN_ACCESS=true")
        names = device_files(device, created)
        if device.kind == "vfio":
            names = self._vfio_files(device, dict(prepared.settings), names)
        if not names:
            raise PrepareError(f"{record}: device {device.name} has no device file to give")
        return {
            "name": prepared.cdi_device_ids[0].partition("=")[2],
            "containerEdits": {
                "env": env,
                "deviceNodes": [self._describe_node(name) for name in names],
            },
        }

    def _vfio_files(
        self, device: Device, settings: Mapping[str, str], legacy: list[str]
    ) -> list[str]:
        """Return the files as NVIDIA's driver does, ``vfio-cdi.go``: preferred is not required."""
        api = settings.get("IOMMU_API_DEVICE") != "false"
        if settings.get("IOMMU_BACKEND_POLICY") != "PreferIommuFD" or device.iommufd is None:
            return [*legacy, VFIO_CONTROL_DEVICE] if api and legacy else legacy
        names = [f"vfio/devices/{device.iommufd}", *([IOMMUFD_CONTROL_DEVICE] if api else [])]
        if api and (self._device_root / VFIO_CONTROL_DEVICE).exists():
            names.append(VFIO_CONTROL_DEVICE)  # by which libvirt knows that there is VFIO at all
        return names

    def _describe_metadata(
        self, record: ClaimRecord, request: str, files: MetadataFiles
    ) -> dict[str, Any]:
        inside = container_path(record, request, self._driver_name)
        mount = _read_only(files.host_path(record.uid, request), inside)
        name = self.metadata_device_id(record.uid, request).partition("=")[2]
        return {"name": name, "containerEdits": {"mounts": [mount]}}

    def _describe_node(self, name: str) -> dict[str, Any]:
        path = f"/dev/{name}"
        if self._declared_only:
            major, minor = device_number(name, apart=bool(self._prefix))
            return {"path": path, "type": "c", "major": major, "minor": minor, "permissions": "rw"}
        file = self._device_root / name
        if not file.is_char_device():
            raise PrepareError(
                f"device file {file} is missing; a container would start without its GPU"
            )
        return {"path": path, "hostPath": str(file), "permissions": "rw"}


def _read_only(file: Path, inside: str) -> dict[str, Any]:
    return {"hostPath": str(file), "containerPath": inside, "options": ["ro", "bind"]}
