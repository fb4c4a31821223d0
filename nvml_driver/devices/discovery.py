"""Makes an inventory of what NVML reports: the devices of a node, as NVIDIA's driver names them.

Source of the names and formats: kubernetes-sigs/dra-driver-nvidia-gpu,
``cmd/gpu-kubelet-plugin/deviceinfo.go`` and ``nvlib.go`` at 95932046. One difference is on
purpose: where that driver gives up on a GPU that it does not understand (an unknown brand, a
missing function), this one publishes the device without that attribute and logs why. A GPU that
is lost, or whose device file cannot be known, is left out, with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pynvml

from kube.simulated import SIMULATED_ATTRIBUTE
from nvml_driver.devices.attributes import add_model_attributes, read_driver_attributes
from nvml_driver.devices.vfio import find_vfio_devices
from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.mig.published import DiscoveredGpu, publish_mig_devices
from nvml_driver.model.inventory import (
    Attribute,
    CounterSet,
    Device,
    Inventory,
    MigInstance,
    RequestPolicy,
)
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.installation import normalize_address, read_pci_attributes
from nvml_driver.nvml.library import (
    GpuUnusableError,
    NvmlLibrary,
    add_attribute,
    ask_nvml,
    salt_uuid,
)
from nvml_driver.options import ConsumableShares, Features

_LOG = logging.getLogger(__name__)
_PLAIN = Features()
_STEP = 2**20  # of shared memory; the API wants the most that can be asked for to be a multiple


def discover_devices(
    library: NvmlLibrary,
    roots: NodeRoots,
    *,
    salt: str | None = None,
    features: Features = _PLAIN,
    is_own: Callable[[MigInstance], bool] = lambda _: False,
) -> Inventory:
    """Ask NVML and sysfs for all devices of this node.

    Args:
        salt: makes UUIDs of simulated GPUs that differ from those of another node with the same
            profile.
        is_own: whether a MIG device is what a published partition became (see `mig.state`); the
            place of any other is taken.

    Raises:
        NvmlUnavailableError: NVML does not initialise, or does not report how many GPUs there are.
    """
    return _Discovery(
        library, roots, salt if library.is_simulated else None, features, is_own
    ).run()


@dataclass(slots=True)
class _Discovery:
    _library: NvmlLibrary
    _roots: NodeRoots
    _salt: str | None
    _features: Features
    _is_own: Callable[[MigInstance], bool]
    _devices: list[Device] = field(default_factory=list)
    _counter_sets: list[CounterSet] = field(default_factory=list)
    _foreign: list[MigInstance] = field(default_factory=list)
    _mig_modes: dict[str, bool] = field(default_factory=dict)
    _left_out: list[str] = field(default_factory=list)

    def run(self) -> Inventory:
        """Return the inventory.

        Raises NvmlUnavailableError, unless GPUs of vfio-pci are wanted, too.
        """
        try:
            with self._library.open_session() as nvml:
                self._ask_gpus(nvml)
        except NvmlUnavailableError as error:
            if not self._features.vfio:
                raise
            _LOG.warning("only GPUs of vfio-pci are published: %s", error)
        if self._features.vfio:
            self._devices += find_vfio_devices(
                self._roots, salt=self._salt, numa_list=self._features.numa_list
            )
        shares = self._features.consumable_shares
        shared = [
            _share_device(device, shares)
            if shares is not None and device.kind != "vfio"
            else device
            for device in self._unique_devices()
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
            foreign_instances=frozenset(self._foreign),
            mig_modes=self._mig_modes,
        )

    def _ask_gpus(self, nvml: Any) -> None:
        try:
            count = nvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise NvmlUnavailableError(f"NVML does not count its GPUs: {error}") from None
        common = read_driver_attributes(nvml)
        partitions = NvmlPartitions(self._library, self._roots, salt=self._salt)
        for index in range(count):
            try:
                gpu = self._ask_gpu(nvml, index, common)
                self._publish_gpu(nvml, index, gpu, partitions)
            except GpuUnusableError as reason:
                self._leave_out(f"GPU {index}", str(reason))

    def _leave_out(self, name: str, reason: str) -> None:
        self._left_out.append(f"{name} left out: {reason}")
        _LOG.warning("%s left out: %s", name, reason)

    def _unique_devices(self) -> Iterator[Device]:
        """Yield devices without a second one of any name, which a slice cannot hold."""
        names: set[str] = set()
        for device in self._devices:
            if device.name in names:
                self._leave_out(device.name, "another device has the same name")
            else:
                names.add(device.name)
                yield device

    def _publish_gpu(
        self, nvml: Any, index: int, discovered: DiscoveredGpu, partitions: NvmlPartitions
    ) -> None:
        """Add the GPU as a whole, or its MIG devices, or both."""
        gpu = discovered.device
        dynamic = self._features.dynamic_mig and (discovered.mig_enabled or discovered.repartitions)
        if not (dynamic and discovered.repartitions):
            self._mig_modes[gpu.name] = discovered.mig_enabled  # else the driver itself switches it
        if not dynamic and not discovered.mig_enabled:
            self._devices.append(gpu)
            return
        mig = publish_mig_devices(
            nvml, discovered, partitions, dynamic=dynamic, is_own=self._is_own
        )
        for name, reason in mig.left_out:
            self._leave_out(name, reason)
        if not mig.devices:
            self._leave_out(
                f"GPU {index}",
                "MIG mode is enabled, so it cannot be used as a full GPU, and it has no MIG device",
            )
        self._devices += mig.devices
        self._counter_sets += mig.counter_sets
        self._foreign += mig.foreign

    def _ask_gpu(self, nvml: Any, index: int, common: dict[str, Attribute]) -> DiscoveredGpu:
        label = f"GPU {index}"
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            minor = int(nvml.nvmlDeviceGetMinorNumber(handle))
        except pynvml.NVMLError as error:
            raise GpuUnusableError(f"NVML does not report its device file: {error}") from None
        name = f"gpu-{minor}"
        label = f"GPU {index} ({name})"
        mig = ask_nvml(label, "MIG mode", nvml.nvmlDeviceGetMigMode, handle, level=logging.DEBUG)
        attributes = {"type": Attribute("string", "gpu"), **common}
        own_uuid = self._read_uuid(nvml, handle, label)
        if own_uuid is not None:
            add_attribute(attributes, label, "uuid", "string", own_uuid, own_uuid)
        architecture = add_model_attributes(nvml, handle, label, attributes)
        address = self._read_address(nvml, handle, label)
        if address is not None:
            attributes |= read_pci_attributes(
                self._roots.sysfs, address, label, numa_list=self._features.numa_list
            )
        memory = ask_nvml(label, "memory", nvml.nvmlDeviceGetMemoryInfo, handle)
        return DiscoveredGpu(
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
            mig_enabled=mig is not None and mig[0] == pynvml.NVML_DEVICE_MIG_ENABLE,
            repartitions=mig is not None
            and architecture is not None
            and architecture >= pynvml.NVML_DEVICE_ARCH_HOPPER,
        )

    def _read_uuid(self, nvml: Any, handle: Any, label: str) -> str | None:
        raw = ask_nvml(label, "uuid", nvml.nvmlDeviceGetUUID, handle)
        return None if raw is None else salt_uuid(str(raw), self._salt)

    def _read_address(self, nvml: Any, handle: Any, label: str) -> str | None:
        pci = ask_nvml(label, "pciBusID", nvml.nvmlDeviceGetPciInfo_v3, handle)
        if pci is None:
            return None
        raw = pci.busId.decode("ascii", "replace") if isinstance(pci.busId, bytes) else pci.busId
        address = normalize_address(str(raw))
        if address is None:
            _LOG.warning("%s is published without pciBusID: NVML's %r cannot be used", label, raw)
        return address


def _share_device(device: Device, mode: ConsumableShares) -> Device:
    """Return the device open for several claims, each with a share of its memory (KEP-5075).

    Modes as kubernetes-sigs/dra-driver-nvidia-gpu has them, ``consumable_shares.go``: ``unlimited``
    lets any number of claims in, with memory only if they ask for it; ``memory`` lets them in until
    the memory is given away, and who does not ask takes all; a number lets in so many, by a
    capacity of its own, ``shares``.
    """
    capacity = dict(device.capacity)
    policies = dict(device.request_policies)
    memory = capacity.get("memory", 0) // _STEP * _STEP
    if "memory" in capacity and memory >= 2 * _STEP:
        capacity["memory"] = memory
        whole = mode == "memory"
        policies["memory"] = RequestPolicy(
            default=memory if whole else 0, minimum=_STEP if whole else 0, step=_STEP
        )
    if isinstance(mode, int):
        capacity["shares"] = mode
        policies["shares"] = RequestPolicy(default=1, minimum=1, step=1)
    return replace(
        device, capacity=capacity, request_policies=policies, allow_multiple_allocations=True
    )
