"""From NVML to an inventory: attribute names, types and formats as NVIDIA's driver publishes them.

Source of the names and formats: kubernetes-sigs/dra-driver-nvidia-gpu,
``cmd/gpu-kubelet-plugin/deviceinfo.go`` and ``nvlib.go`` at 95932046. One difference is on
purpose: where that driver gives up on a GPU that it does not understand (an unknown brand, a
missing function), this one publishes the device without that attribute and logs why. A GPU that
is lost, or whose device file cannot be known, is left out, with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pynvml

from nvml_driver.asking import GpuUnusableError, ask, put, version
from nvml_driver.dynamic_mig import mig_attributes, partition
from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.features import Features
from nvml_driver.inventory import SIMULATED_ATTRIBUTE, Attribute, CounterSet, Device, Inventory
from nvml_driver.library import NvmlLibrary
from nvml_driver.mig import NvmlPartitions, instances
from nvml_driver.migprofiles import device_name, profiles
from nvml_driver.roots import NodeRoots
from nvml_driver.shares import share
from nvml_driver.sysfs import normal_address, pci_attributes
from nvml_driver.uuids import salted
from nvml_driver.vfio import vfio_devices

__all__ = ["discover", "version"]

_LOG = logging.getLogger(__name__)

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
_PLAIN = Features()
_MIG_ON = pynvml.NVML_DEVICE_MIG_ENABLE


def discover(
    library: NvmlLibrary,
    roots: NodeRoots | Path,
    *,
    salt: str | None = None,
    features: Features = _PLAIN,
) -> Inventory:
    """Ask NVML and sysfs for all devices of this node.

    Args:
        library: the NVML to ask.
        roots: where sysfs and the like are; a path is that of ``/sys`` alone.
        salt: for simulated GPUs only: makes UUIDs that differ from those of another salt, so that
            nodes that show the same profile do not show the same GPU.
        features: what to publish beyond full GPUs and static MIG devices.

    Raises:
        NvmlUnavailableError: NVML does not initialise, or does not tell how many GPUs there are.
    """
    if isinstance(roots, Path):
        roots = NodeRoots(sysfs=roots)
    return _Discovery(library, roots, salt if library.is_simulated else None, features).run()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A GPU, and what discovery must know of it that is not published."""

    device: Device
    handle: Any
    memory: int
    mig_enabled: bool
    repartitions: bool  # MIG mode can be switched on and off while the GPU is there


class _Discovery:
    """One run over all GPUs."""

    def __init__(
        self, library: NvmlLibrary, roots: NodeRoots, salt: str | None, features: Features
    ) -> None:
        self._library = library
        self._roots = roots
        self._salt = salt
        self._features = features
        self._devices: list[Device] = []
        self._counter_sets: list[CounterSet] = []
        self._left_out: list[str] = []

    def run(self) -> Inventory:
        try:
            with self._library.session() as nvml:
                self._ask_all(nvml)
        except NvmlUnavailableError as error:
            if not self._features.vfio:
                raise
            _LOG.warning("only GPUs of vfio-pci are published: %s", error)
        if self._features.vfio:
            self._devices += vfio_devices(
                self._roots, salt=self._salt, numa_list=self._features.numa_list
            )
        shares = self._features.consumable_shares
        shared = [
            share(device, shares) if shares is not None and device.kind != "vfio" else device
            for device in self._unique()
        ]
        if self._library.is_simulated:
            mark = {SIMULATED_ATTRIBUTE: Attribute("bool", True)}
            shared = [
                replace(device, attributes=dict(sorted({**device.attributes, **mark}.items())))
                for device in shared
            ]
        return Inventory(
            devices=tuple(shared),
            simulated=self._library.is_simulated,
            left_out=tuple(self._left_out),
            counter_sets=tuple(self._counter_sets),
        )

    def _ask_all(self, nvml: Any) -> None:
        try:
            count = nvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise NvmlUnavailableError(f"NVML does not count its GPUs: {error}") from None
        common = _driver_attributes(nvml)
        for index in range(count):
            try:
                asked = self._ask_gpu(nvml, index, common)
                self._publish(nvml, index, asked)
            except GpuUnusableError as reason:
                self._leave_out(f"GPU {index}", str(reason))

    def _leave_out(self, what: str, reason: str) -> None:
        self._left_out.append(f"{what} left out: {reason}")
        _LOG.warning("%s left out: %s", what, reason)

    def _unique(self) -> Iterator[Device]:
        """A slice cannot hold two devices of one name."""
        seen: set[str] = set()
        for device in self._devices:
            if device.name in seen:
                self._leave_out(device.name, "another device has the same name")
            else:
                seen.add(device.name)
                yield device

    def _publish(self, nvml: Any, index: int, asked: _Asked) -> None:
        """The GPU as a whole, or its MIG devices, or both."""
        gpu = asked.device
        if self._features.dynamic_mig and (asked.mig_enabled or asked.repartitions):
            parted = partition(nvml, asked.handle, gpu, asked.memory)
            if parted is not None:
                whole, parts, counters = parted
                self._devices += [whole, *parts] if asked.repartitions else parts
                self._counter_sets.append(counters)
                return
        if not asked.mig_enabled:
            self._devices.append(gpu)
            return
        found = list(self._static(nvml, asked))
        if not found:
            self._leave_out(
                f"GPU {index}",
                "MIG mode is enabled, so it cannot be used as a full GPU, and it has no MIG device",
            )
        self._devices += found

    def _static(self, nvml: Any, asked: _Asked) -> Iterator[Device]:
        """The MIG devices that an administrator has made."""
        gpu = asked.device
        assert gpu.minor is not None
        partitions = NvmlPartitions(self._library, self._roots, salt=self._salt)
        capacities = {
            profile.id: profile.capacity
            for profile in profiles(nvml, asked.handle, gpu.name, asked.memory)
        }
        found = list(instances(nvml, asked.handle, gpu.minor, asked.memory))
        for place, gi_id, ci_id, told in found:
            name = device_name(place)
            if ci_id is None:
                self._leave_out(name, "its GPU instance has no compute instance")
                continue
            if sum(other == gi_id for _, other, _, _ in found) > 1:
                self._leave_out(name, "its GPU instance is split into several compute instances")
                continue
            instance = partitions.make(place, gi_id, ci_id, told)
            if place.gi_profile_id not in capacities:
                _LOG.warning("%s is published without its profile's capacity: not told", name)
            slices = {f"memorySlice{at}": 1 for at in range(place.start, place.start + place.size)}
            yield Device(
                kind="mig",
                name=name,
                parent=gpu.name,
                minor=gpu.minor,
                uuid=instance.uuid,
                pci_bus_id=gpu.pci_bus_id,
                attributes=mig_attributes(gpu, place.profile, instance.uuid),
                capacity={**capacities.get(place.gi_profile_id, {}), **slices},
                place=place,
                instance=instance,
            )

    def _ask_gpu(self, nvml: Any, index: int, common: dict[str, Attribute]) -> _Asked:
        who = f"GPU {index}"
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            minor = int(nvml.nvmlDeviceGetMinorNumber(handle))
        except pynvml.NVMLError as error:
            raise GpuUnusableError(f"NVML cannot tell its device file: {error}") from None
        name = f"gpu-{minor}"
        who = f"GPU {index} ({name})"
        mig = ask(who, "MIG mode", nvml.nvmlDeviceGetMigMode, handle, level=logging.DEBUG)
        attributes = {"type": Attribute("string", "gpu"), **common}
        own_uuid = self._uuid(nvml, handle, who)
        if own_uuid is not None:
            put(attributes, who, "uuid", "string", own_uuid, own_uuid)
        architecture = _describe(nvml, handle, who, attributes)
        address = self._address(nvml, handle, who)
        if address is not None:
            attributes |= pci_attributes(
                self._roots.sysfs, address, who, numa_list=self._features.numa_list
            )
        memory = ask(who, "memory", nvml.nvmlDeviceGetMemoryInfo, handle)
        return _Asked(
            device=Device(
                name=name,
                minor=minor,
                uuid=own_uuid,
                pci_bus_id=address,
                attributes=dict(sorted(attributes.items())),
                capacity={} if memory is None else {"memory": int(memory.total)},
            ),
            handle=handle,
            memory=0 if memory is None else int(memory.total),
            mig_enabled=mig is not None and mig[0] == _MIG_ON,
            repartitions=mig is not None
            and architecture is not None
            and architecture >= pynvml.NVML_DEVICE_ARCH_HOPPER,
        )

    def _uuid(self, nvml: Any, handle: Any, who: str) -> str | None:
        told = ask(who, "uuid", nvml.nvmlDeviceGetUUID, handle)
        return None if told is None else salted(str(told), self._salt)

    def _address(self, nvml: Any, handle: Any, who: str) -> str | None:
        pci = ask(who, "pciBusID", nvml.nvmlDeviceGetPciInfo_v3, handle)
        if pci is None:
            return None
        told = pci.busId.decode("ascii", "replace") if isinstance(pci.busId, bytes) else pci.busId
        address = normal_address(str(told))
        if address is None:
            _LOG.warning("%s is published without pciBusID: NVML's %r cannot be used", who, told)
        return address


def _driver_attributes(nvml: Any) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    text = ask("the driver", "driverVersion", nvml.nvmlSystemGetDriverVersion)
    if text is not None:
        put(attributes, "the driver", "driverVersion", "version", version(str(text)), text)
    cuda = ask("the driver", "cudaDriverVersion", nvml.nvmlSystemGetCudaDriverVersion_v2)
    if cuda is None:  # drivers before 2018 have the first version of the function only
        cuda = ask("the driver", "cudaDriverVersion", nvml.nvmlSystemGetCudaDriverVersion)
    if cuda is not None:
        dotted = version(f"{cuda // 1000}.{cuda % 1000 // 10}")
        put(attributes, "the driver", "cudaDriverVersion", "version", dotted, cuda)
    return attributes


def _describe(nvml: Any, handle: Any, who: str, attributes: dict[str, Attribute]) -> int | None:
    """What model it is, into ``attributes``; NVML's number of the architecture."""
    product = ask(who, "productName", nvml.nvmlDeviceGetName, handle)
    if product is not None:
        put(attributes, who, "productName", "string", str(product), product)
    brand = ask(who, "brand", nvml.nvmlDeviceGetBrand, handle)
    if brand is not None:
        put(attributes, who, "brand", "string", BRANDS.get(brand), brand)
    architecture = ask(who, "architecture", nvml.nvmlDeviceGetArchitecture, handle)
    if architecture is not None:
        word = ARCHITECTURES.get(architecture)
        put(attributes, who, "architecture", "string", word, architecture)
    compute = ask(who, "cudaComputeCapability", nvml.nvmlDeviceGetCudaComputeCapability, handle)
    if compute is not None:
        dotted = version(f"{compute[0]}.{compute[1]}")
        put(attributes, who, "cudaComputeCapability", "version", dotted, compute)
    mode = ask(who, "addressingMode", nvml.nvmlDeviceGetAddressingMode, handle, level=logging.DEBUG)
    if mode is not None:
        put(attributes, who, "addressingMode", "string", ADDRESSING_MODES.get(mode), mode)
    return None if architecture is None else int(architecture)
