"""Lists the MIG devices that exist, as NVML does, and the files that open them, as /proc does."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml

from nvml_driver.errors import DriverError
from nvml_driver.mig.profiles import list_profiles
from nvml_driver.model.inventory import MigPlace
from nvml_driver.nvml.installation import read_word
from nvml_driver.nvml.library import GpuUnusableError

_LOG = logging.getLogger(__name__)
ROOM = 16
"""More GPU instances of one profile, and compute instances in one of them, than any GPU has."""


class MigError(DriverError):
    """A MIG device cannot be made, found or destroyed; the message says where and why."""


def list_instances(
    nvml: Any, handle: Any, minor: int, total_bytes: int = 0
) -> Iterator[tuple[MigPlace, int, int | None, str | None]]:
    """Yield place, ids, UUID of each compute instance of each GPU instance.

    A GPU instance without compute instances comes once, with None for the id and the UUID. Raises
    GpuUnusableError.
    """
    uuids = read_mig_uuids(nvml, handle)
    for profile in list_profiles(nvml, handle, f"gpu-{minor}", total_bytes):
        for gi in list_gpu_instances(nvml, handle, profile.id):
            try:
                info = nvml.nvmlGpuInstanceGetInfo(gi)
            except pynvml.NVMLError as error:
                _LOG.warning("gpu-%d: a GPU instance of %s: %s", minor, profile.name, error)
                continue
            place = profile.place_at(minor, info.placement.start, info.placement.size)
            ci_ids = sorted(ci for gi_id, ci in uuids if gi_id == info.id)
            for ci in ci_ids:
                yield place, int(info.id), ci, uuids[int(info.id), ci]
            if not ci_ids:
                yield place, int(info.id), None, None


def list_gpu_instances(nvml: Any, handle: Any, profile_id: int) -> list[Any]:
    """Return handles of a profile's GPU instances.

    Raises GpuUnusableError: NVML cannot be asked.
    """
    handles = (pynvml.c_nvmlGpuInstance_t * ROOM)()
    count = ctypes.c_uint(ROOM)
    try:
        nvml.nvmlDeviceGetGpuInstances(handle, profile_id, handles, ctypes.byref(count))
    except pynvml.NVMLError as error:
        if error.value not in (
            pynvml.NVML_ERROR_NOT_SUPPORTED,  # MIG is off
            pynvml.NVML_ERROR_INVALID_ARGUMENT,  # there is no such profile
        ):
            raise GpuUnusableError(f"its GPU instances cannot be listed: {error}") from None
        return []
    return list(handles[: min(count.value, ROOM)])


def read_mig_uuids(nvml: Any, handle: Any) -> dict[tuple[int, int], str | None]:
    """Return the UUIDs of MIG devices as NVML reports them, by GPU and compute instance.

    None for a device whose UUID NVML does not report.
    """
    uuids: dict[tuple[int, int], str | None] = {}
    try:
        count = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except pynvml.NVMLError:
        return uuids
    for index in range(min(count, 64)):
        try:
            device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            key = (
                nvml.nvmlDeviceGetGpuInstanceId(device),
                nvml.nvmlDeviceGetComputeInstanceId(device),
            )
        except pynvml.NVMLError:
            continue  # no device at this index
        uuids[key] = None
        with contextlib.suppress(pynvml.NVMLError):
            uuids[key] = str(nvml.nvmlDeviceGetUUID(device))
    return uuids


def list_gpus(nvml: Any) -> Iterator[tuple[int, Any]]:
    """Yield minor number and handle of each GPU. Raises MigError: NVML does not count them."""
    try:
        count = nvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        raise MigError(f"NVML does not count its GPUs: {error}") from None
    for index in range(count):
        with contextlib.suppress(pynvml.NVMLError):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            minor = int(nvml.nvmlDeviceGetMinorNumber(handle))
            yield minor, handle


def find_gpu(nvml: Any, minor: int) -> Any:
    """Return the handle of a GPU. Raises MigError: NVML does not show it."""
    for shown_minor, handle in list_gpus(nvml):
        if shown_minor == minor:
            return handle
    raise MigError(f"gpu-{minor} is gone, or NVML has lost it")


def read_mode(nvml: Any, handle: Any) -> int | None:
    """Return NVML's MIG mode now; None for a GPU without MIG."""
    try:
        return int(nvml.nvmlDeviceGetMigMode(handle)[0])
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            return None
        raise


def find_capabilities(
    proc: Path, gpu_minor: int, gi_id: int, ci_id: int | None
) -> tuple[int | None, int | None]:
    """Return the minors in ``/dev/nvidia-caps`` that open a GPU instance and a compute instance.

    ``/proc/driver/nvidia-caps/mig-minors`` lists them for all instances that could be; older
    drivers only have one file for each that is there, ``capabilities/gpu0/mig/gi1/access``
    (NVIDIA's MIG User Guide, "Device Nodes and Capabilities"). None where /proc does not report.
    """
    gi = f"gpu{gpu_minor}/gi{gi_id}"
    table = read_word(proc / "driver" / "nvidia-caps" / "mig-minors") or ""
    minors = dict(re.findall(r"^(\S+)/access (\d+)$", table, re.MULTILINE))
    files = proc / "driver" / "nvidia" / "capabilities" / f"gpu{gpu_minor}" / "mig" / f"gi{gi_id}"
    gi_minor = minors.get(gi) or _read_minor(files / "access")
    ci_minor = None
    if ci_id is not None:
        ci_minor = minors.get(f"{gi}/ci{ci_id}") or _read_minor(files / f"ci{ci_id}" / "access")
    return _parse_number(gi_minor), _parse_number(ci_minor)


def _read_minor(path: Path) -> str | None:
    match = re.search(r"^DeviceFileMinor:\s*(\d+)\s*$", read_word(path) or "", re.MULTILINE)
    return match.group(1) if match else None


def _parse_number(text: str | None) -> int | None:
    return None if text is None else int(text)
