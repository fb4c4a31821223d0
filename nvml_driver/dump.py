"""Records a node's GPUs as a profile for simulated NVML. Only reads.

A machine with GPUs is worth this: numbers with a source. The record has what NVML and
sysfs report, in the profiles' own form; UUIDs are replaced unless they are asked for, because they
name somebody's hardware.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pynvml
from pydantic import ValidationError

from nvml_driver.errors import DriverError, NvmlUnavailableError
from nvml_driver.mig.listing import list_instances
from nvml_driver.mig.profiles import GiProfile, list_placements, list_profiles
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.installation import normalize_address, read_link_name, read_word
from nvml_driver.nvml.library import NvmlLibrary, salt_uuid
from nvml_driver.simulated.migtable import MigProfile, MigTable

_MIB = 2**20
_ADDRESSING = {
    pynvml.NVML_DEVICE_ADDRESSING_MODE_NONE: "NONE",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_HMM: "HMM",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS: "ATS",
}


def record_gpus(
    library: NvmlLibrary, roots: NodeRoots, *, name: str, keep_uuids: bool = False
) -> dict[str, Any]:
    """Return the profile, for ``parse_profile``. Raises NvmlUnavailableError, DriverError."""
    with library.open_session() as nvml:
        driver = _ask(nvml.nvmlSystemGetDriverVersion) or "0"
        cuda = _ask(nvml.nvmlSystemGetCudaDriverVersion_v2) or 0
        try:
            count = nvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise NvmlUnavailableError(f"NVML does not count its GPUs: {error}") from None
        if count == 0:
            raise NvmlUnavailableError("NVML shows no GPU, so there is nothing to record")
        gpus = [_Gpu(nvml, index, roots, keep_uuids).record_gpu() for index in range(count)]
        source = "simulated NVML" if library.is_simulated else "NVML and sysfs"
        today = datetime.now(UTC).date().isoformat()
        return {
            "name": name,
            "description": f"Recorded: {', '.join(dict.fromkeys(gpu['name'] for gpu in gpus))}.",
            "sources": [
                f"all numbers: {source} of a node with driver {driver}, on {today}",
                "UUIDs are those of the node" if keep_uuids else "UUIDs are generated",
            ],
            "driverVersion": str(driver),
            "nvmlVersion": str(_ask(nvml.nvmlSystemGetNVMLVersion) or "0"),
            "cudaDriverVersion": int(cuda),
            "gpus": gpus,
        }


class _Gpu:
    def __init__(self, nvml: Any, index: int, roots: NodeRoots, keep_uuids: bool) -> None:
        self._nvml = nvml
        self._index = index
        self._roots = roots
        self._keep_uuids = keep_uuids

    def record_gpu(self) -> dict[str, Any]:
        """Return the GPU as an entry of a profile's ``gpus``.

        Raises DriverError: NVML cannot say.
        """
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(self._index)
            pci = nvml.nvmlDeviceGetPciInfo_v3(handle)
            compute = nvml.nvmlDeviceGetCudaComputeCapability(handle)
            uuid = str(nvml.nvmlDeviceGetUUID(handle))
            raw = pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId)
            address = normalize_address(raw)
            gpu: dict[str, Any] = {
                "uuid": uuid if self._keep_uuids else salt_uuid(uuid, "recorded"),
                "name": str(nvml.nvmlDeviceGetName(handle)),
                "minor": int(nvml.nvmlDeviceGetMinorNumber(handle)),
                "brand": _name_constant("NVML_BRAND_", nvml.nvmlDeviceGetBrand(handle)),
                "architecture": _name_constant(
                    "NVML_DEVICE_ARCH_", nvml.nvmlDeviceGetArchitecture(handle)
                ),
                "cudaComputeCapability": f"{compute[0]}.{compute[1]}",
                "pciBusId": address,
                "pciDeviceId": int(pci.pciDeviceId),
                "pciSubsystemId": int(pci.pciSubSystemId),
            }
        except pynvml.NVMLError as error:
            raise DriverError(f"GPU {self._index} cannot be recorded: {error}") from None
        memory = _ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is not None:
            gpu["memoryBytes"] = int(memory.total)
        mode = _ADDRESSING.get(_ask(nvml.nvmlDeviceGetAddressingMode, handle))
        if mode is not None:
            gpu["addressingMode"] = mode
        events = _ask(nvml.nvmlDeviceGetSupportedEventTypes, handle)
        if events is not None:
            gpu["eventTypes"] = int(events)
        if address is not None:
            gpu |= self._read_sysfs(address)
        return gpu | self._record_mig(handle, gpu)

    def _read_sysfs(self, address: str) -> dict[str, Any]:
        link = self._roots.sysfs / "bus" / "pci" / "devices" / address
        fields: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            target = link.readlink().parts
            fields["sysfsPath"] = str(Path(*target[target.index("devices") + 1 :]))
        node = read_word(link / "numa_node")
        if node is not None and node.lstrip("-").isdigit():
            fields["numaNode"] = max(-1, int(node))
        group = read_link_name(link / "iommu_group")
        if group is not None and group.isdigit():
            fields["iommuGroup"] = int(group)
        return fields

    def _record_mig(self, handle: Any, gpu: dict[str, Any]) -> dict[str, Any]:
        """Return mode, table and devices; the table only if it is reported in the present mode."""
        nvml = self._nvml
        mode = _ask(nvml.nvmlDeviceGetMigMode, handle)
        if mode is None:
            return {}
        enabled = mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE
        fields: dict[str, Any] = {"migMode": "enabled" if enabled else "disabled"}
        rows = list(self._list_rows(handle, f"gpu-{gpu['minor']}", gpu.get("memoryBytes", 0)))
        if not rows:
            return fields
        slices = max(start + row.size for row in rows for start in row.starts)
        table = MigTable(memory_slices=8 if slices > 4 else 4, profiles=tuple(rows))
        fields["mig"] = table.model_dump(by_alias=True, mode="json")
        instances = list(list_instances(nvml, handle, gpu["minor"], gpu.get("memoryBytes", 0)))
        places = {gi: place for place, gi, ci, _ in instances if ci is not None}
        if enabled and places:
            fields["migInstances"] = [
                {"profile": place.profile, "start": place.start} for place in places.values()
            ]
        return fields

    def _list_rows(self, handle: Any, label: str, memory: int) -> Iterator[MigProfile]:
        for profile in list_profiles(self._nvml, handle, label, memory):
            places = list_placements(self._nvml, handle, profile, label)
            info = _ask(self._nvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, profile.index, 1)
            if places and info is not None:
                with contextlib.suppress(ValidationError):  # a placement of another shape
                    yield _describe_profile(profile, places, int(info.instanceCount))


def _describe_profile(
    profile: GiProfile, places: list[tuple[int, int]], instances: int
) -> MigProfile:
    capacity = profile.capacity
    return MigProfile(
        name=profile.name,
        index=profile.index,
        id=profile.id,
        slices=profile.slices,
        instances=instances,
        multiprocessors=capacity["multiprocessors"],
        copy_engines=capacity["copyEngines"],
        decoders=capacity["decoders"],
        encoders=capacity["encoders"],
        jpeg_engines=capacity["jpegEngines"],
        ofa_engines=capacity["ofaEngines"],
        memory_mib=capacity["memory"] // _MIB,
        starts=tuple(start for start, _ in places),
        size=places[0][1],
    )


def _ask(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return None


def _name_constant(prefix: str, value: int) -> str | int:
    """Return the header's name without its prefix, or the number if it has none."""
    for name, number in vars(pynvml).items():
        if name.startswith(prefix) and number == value and not name.endswith("_COUNT"):
            return str(name.removeprefix(prefix))
    return int(value)
