"""From NVML to an inventory: attribute names, types and formats as NVIDIA's driver publishes them.

Source of the names and formats: kubernetes-sigs/dra-driver-nvidia-gpu,
``cmd/gpu-kubelet-plugin/deviceinfo.go`` and ``nvlib.go`` at 95932046. One difference is on
purpose: where that driver gives up on a GPU that it does not understand (an unknown brand, a
missing function), this one publishes the device without that attribute and logs why. A GPU that
is lost, or whose device file cannot be known, is left out, with the reason.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.inventory import SIMULATED_ATTRIBUTE, Attribute, AttributeType, Gpu, Inventory
from nvml_driver.library import NvmlLibrary

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

# The words of go-nvlib's device package, which the published attributes use.
BRANDS = {
    pynvml.NVML_BRAND_UNKNOWN: "Unknown",
    pynvml.NVML_BRAND_QUADRO: "Quadro",
    pynvml.NVML_BRAND_TESLA: "Tesla",
    pynvml.NVML_BRAND_NVS: "NVS",
    pynvml.NVML_BRAND_GRID: "Grid",
    pynvml.NVML_BRAND_GEFORCE: "GeForce",
    pynvml.NVML_BRAND_TITAN: "Titan",
    pynvml.NVML_BRAND_NVIDIA_VAPPS: "NvidiaVApps",
    pynvml.NVML_BRAND_NVIDIA_VPC: "NvidiaVPC",
    pynvml.NVML_BRAND_NVIDIA_VCS: "NvidiaVCS",
    pynvml.NVML_BRAND_NVIDIA_VWS: "NvidiaVWS",
    pynvml.NVML_BRAND_NVIDIA_CLOUD_GAMING: "NvidiaCloudGaming",
    pynvml.NVML_BRAND_QUADRO_RTX: "QuadroRTX",
    pynvml.NVML_BRAND_NVIDIA_RTX: "NvidiaRTX",
    pynvml.NVML_BRAND_NVIDIA: "Nvidia",
    pynvml.NVML_BRAND_GEFORCE_RTX: "GeForceRTX",
    pynvml.NVML_BRAND_TITAN_RTX: "TitanRTX",
}
ARCHITECTURES = {
    pynvml.NVML_DEVICE_ARCH_KEPLER: "Kepler",
    pynvml.NVML_DEVICE_ARCH_MAXWELL: "Maxwell",
    pynvml.NVML_DEVICE_ARCH_PASCAL: "Pascal",
    pynvml.NVML_DEVICE_ARCH_VOLTA: "Volta",
    pynvml.NVML_DEVICE_ARCH_TURING: "Turing",
    pynvml.NVML_DEVICE_ARCH_AMPERE: "Ampere",
    pynvml.NVML_DEVICE_ARCH_ADA: "Ada Lovelace",
    pynvml.NVML_DEVICE_ARCH_HOPPER: "Hopper",
    pynvml.NVML_DEVICE_ARCH_BLACKWELL: "Blackwell",
}
ADDRESSING_MODES = {
    pynvml.NVML_DEVICE_ADDRESSING_MODE_NONE: "None",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_HMM: "HMM",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS: "ATS",
}
_LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_STRING_LIMIT = 64  # DeviceAttributeMaxValueLength of the API
_UUID_SALT = uuid.UUID("6c1f5a0e-3f0d-4b1e-9a57-0d6f3f2b7c11")


class _GpuUnusableError(Exception):
    """This GPU cannot be published at all."""


def discover(library: NvmlLibrary, sysfs_root: Path, *, salt: str | None = None) -> Inventory:
    """Ask NVML and sysfs for all GPUs of this node.

    Args:
        library: the NVML to ask.
        sysfs_root: where ``/sys`` is.
        salt: for simulated GPUs only: makes UUIDs that differ from those of another salt, so that
            nodes that show the same profile do not show the same GPU.

    Raises:
        NvmlUnavailableError: NVML does not initialise, or does not tell how many GPUs there are.
    """
    left_out: list[str] = []
    found: list[Gpu] = []
    simulated = library.is_simulated
    with library.session() as nvml:
        try:
            count = nvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise NvmlUnavailableError(f"NVML does not count its GPUs: {error}") from None
        common = _driver_attributes(nvml)
        if simulated:
            common[SIMULATED_ATTRIBUTE] = Attribute("bool", True)
        for index in range(count):
            try:
                gpu = _Reader(nvml, index, sysfs_root, salt if simulated else None).read(common)
            except _GpuUnusableError as reason:
                left_out.append(f"GPU {index} left out: {reason}")
                _LOG.warning("GPU %d left out: %s", index, reason)
            else:
                found.append(gpu)
    return Inventory(devices=tuple(found), simulated=simulated, left_out=tuple(left_out))


def version(text: str) -> str | None:
    """A semantic version of what NVML writes with leading zeros or too few parts.

    ``580.95.05`` becomes ``580.95.5``, ``7.5`` becomes ``7.5.0``; None for what is no version.
    """
    parts = text.split(".")
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return ".".join(str(int(part)) for part in [*parts, "0", "0"][:3])


def _driver_attributes(nvml: Any) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    text = _ask("the driver", "driverVersion", nvml.nvmlSystemGetDriverVersion)
    if text is not None:
        _put(attributes, "the driver", "driverVersion", "version", version(str(text)), text)
    cuda = _ask("the driver", "cudaDriverVersion", nvml.nvmlSystemGetCudaDriverVersion_v2)
    if cuda is None:  # drivers before 2018 have the first version of the function only
        cuda = _ask("the driver", "cudaDriverVersion", nvml.nvmlSystemGetCudaDriverVersion)
    if cuda is not None:
        dotted = version(f"{cuda // 1000}.{cuda % 1000 // 10}")
        _put(attributes, "the driver", "cudaDriverVersion", "version", dotted, cuda)
    return attributes


def _ask(
    who: str,
    what: str,
    function: Callable[..., _T],
    *arguments: Any,
    level: int = logging.INFO,
) -> _T | None:
    """What NVML answers about the driver or a GPU; None if it cannot say.

    Args:
        who: the driver or a GPU, for the log.
        what: the attribute, for the log.
        function: of nvidia-ml-py.
        arguments: a GPU's handle, or nothing.
        level: how to log what NVML cannot say; lower for what many GPUs do not have.

    Raises:
        _GpuUnusableError: the GPU is lost, so that nothing more can be asked.
    """
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        if arguments and error.value in _LOST:
            raise _GpuUnusableError(str(error)) from None
        _LOG.log(level, "%s is published without %s: %s", who, what, error)
        return None


def _put(
    attributes: dict[str, Attribute],
    who: str,
    name: str,
    kind: AttributeType,
    value: str | None,
    raw: object,
) -> None:
    if value is None or not 0 < len(value) <= _STRING_LIMIT:
        _LOG.warning("%s is published without %s: NVML's %r cannot be used", who, name, raw)
    else:
        attributes[name] = Attribute(kind, value)


class _Reader:
    """Reads one GPU."""

    def __init__(self, nvml: Any, index: int, sysfs_root: Path, salt: str | None) -> None:
        self._nvml = nvml
        self._index = index
        self._sysfs = sysfs_root
        self._salt = salt
        self._who = f"GPU {index}"

    def read(self, common: dict[str, Attribute]) -> Gpu:
        nvml, who = self._nvml, self._who
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(self._index)
            minor = int(nvml.nvmlDeviceGetMinorNumber(handle))
        except pynvml.NVMLError as error:
            raise _GpuUnusableError(f"NVML cannot tell its device file: {error}") from None
        mig = _ask(who, "MIG mode", nvml.nvmlDeviceGetMigMode, handle, level=logging.DEBUG)
        if mig is not None and mig[0] == pynvml.NVML_DEVICE_MIG_ENABLE:
            raise _GpuUnusableError("MIG mode is enabled, so it cannot be used as a full GPU")

        name = f"gpu-{minor}"
        self._who = who = f"GPU {self._index} ({name})"
        attributes = {"type": Attribute("string", "gpu"), **common}
        own_uuid = self._uuid(handle)
        if own_uuid is not None:
            _put(attributes, who, "uuid", "string", own_uuid, own_uuid)
        product = _ask(who, "productName", nvml.nvmlDeviceGetName, handle)
        if product is not None:
            _put(attributes, who, "productName", "string", str(product), product)
        brand = _ask(who, "brand", nvml.nvmlDeviceGetBrand, handle)
        if brand is not None:
            _put(attributes, who, "brand", "string", BRANDS.get(brand), brand)
        architecture = _ask(who, "architecture", nvml.nvmlDeviceGetArchitecture, handle)
        if architecture is not None:
            word = ARCHITECTURES.get(architecture)
            _put(attributes, who, "architecture", "string", word, architecture)
        compute = _ask(
            who, "cudaComputeCapability", nvml.nvmlDeviceGetCudaComputeCapability, handle
        )
        if compute is not None:
            dotted = version(f"{compute[0]}.{compute[1]}")
            _put(attributes, who, "cudaComputeCapability", "version", dotted, compute)
        mode = _ask(
            who,
            "addressingMode",
            nvml.nvmlDeviceGetAddressingMode,
            handle,
            level=logging.DEBUG,
        )
        if mode is not None:
            _put(attributes, who, "addressingMode", "string", ADDRESSING_MODES.get(mode), mode)
        self._read_pci(handle, attributes)

        memory = _ask(who, "memory", nvml.nvmlDeviceGetMemoryInfo, handle)
        return Gpu(
            name=name,
            minor=minor,
            uuid=own_uuid,
            attributes=dict(sorted(attributes.items())),
            capacity={} if memory is None else {"memory": int(memory.total)},
        )

    def _uuid(self, handle: Any) -> str | None:
        found = _ask(self._who, "uuid", self._nvml.nvmlDeviceGetUUID, handle)
        if found is None or self._salt is None:
            return found
        return f"GPU-{uuid.uuid5(_UUID_SALT, f'{self._salt}/{found}')}"

    def _read_pci(self, handle: Any, attributes: dict[str, Attribute]) -> None:
        """The attributes that Kubernetes itself names (resource.kubernetes.io/...)."""
        pci = _ask(self._who, "pciBusID", self._nvml.nvmlDeviceGetPciInfo_v3, handle)
        if pci is None:
            return
        told = pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId)
        address = told.lower()
        if len(address) == len("00000000:00:00.0") and address.startswith("0000"):
            address = address[4:]  # NVML writes the domain with eight digits, sysfs with four
        usable = address if _PCI_ADDRESS.fullmatch(address) else None
        prefix = "resource.kubernetes.io/"
        _put(attributes, self._who, f"{prefix}pciBusID", "string", usable, told)
        if usable is None:
            return
        link = self._sysfs / "bus" / "pci" / "devices" / usable
        try:
            target = link.readlink().parts
        except OSError as error:
            _LOG.info("%s is published without pcieRoot: %s", self._who, error)
            return
        # ../../../devices/pci0000:00/0000:00:1e.0
        below = target[target.index("devices") + 1 :] if "devices" in target else ()
        root = below[0] if below and below[0].startswith("pci") else None
        _put(attributes, self._who, f"{prefix}pcieRoot", "string", root, link)
        try:
            node = int((link / "numa_node").read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            _LOG.info("%s is published without numaNode: %s", self._who, error)
            return
        if node >= 0:  # -1: the platform does not tell
            attributes[f"{prefix}numaNode"] = Attribute("int", node)
