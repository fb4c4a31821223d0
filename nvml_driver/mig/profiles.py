"""Reads what a GPU can be partitioned into from NVML: profiles, their engines and placements.

The names are those of ``nvidia-smi``. Newer drivers report them; for older ones they are made the
way NVIDIA's go-nvlib does: a memory of the nearest eighth of the GPU's, rounded up to GB.
"""

from __future__ import annotations

import ctypes
import logging
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pynvml

from nvml_driver.model.inventory import MigPlace
from nvml_driver.nvml.library import LOST, GpuUnusableError

_LOG = logging.getLogger(__name__)
_MIB = 2**20
_MEDIA = {
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1: "+me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1: "+me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX: "+gfx",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX: "+gfx",
    pynvml.NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX: "+gfx",
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME: "-me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME: "-me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME: "+me.all",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME: "+me.all",
}
COMPUTE_PROFILES = {
    1: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE,
    2: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE,
    3: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE,
    4: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE,
    6: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE,
    7: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE,
    8: pynvml.NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE,
}
"""Compute slices to the compute instance profile that takes them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiProfile:
    """One GPU instance profile, for example ``1g.5gb+me``."""

    name: str
    index: int
    id: int
    slices: int
    capacity: dict[str, int]

    def place_at(self, minor: int, start: int, size: int) -> MigPlace:
        """Return this profile at one of its placements of a GPU."""
        return MigPlace(
            parent_minor=minor,
            profile=self.name,
            gi_profile_id=self.id,
            gi_profile_index=self.index,
            ci_profile_index=COMPUTE_PROFILES[self.slices],
            start=start,
            size=size,
        )


def device_name(place: MigPlace) -> str:
    """Return a name like ``gpu-0-mig-1g5gb-19-0``.

    ``+`` becomes ``-``, because a device's name is a DNS label.
    """
    profile = re.sub(r"[^a-z0-9-]", "-", place.profile.lower().replace(".", ""))
    return f"gpu-{place.parent_minor}-mig-{profile}-{place.gi_profile_id}-{place.start}"


def profile_name(index: int, slices: int, memory_mib: int, total_bytes: int) -> str:
    """Return the name of a profile that NVML does not report.

    ``index`` (NVML's) tells media engines, ``slices`` are of compute; memory is of an instance and
    of the GPU.
    """
    share = math.ceil(memory_mib * _MIB / total_bytes * 8) / 8 if total_bytes else 0.0
    gigabytes = math.floor(share * math.ceil(total_bytes / 2**30) + 0.5)
    return f"{slices}g.{gigabytes}gb{_MEDIA.get(index, '')}"


def list_profiles(nvml: Any, handle: Any, label: str, total_bytes: int) -> Iterator[GiProfile]:
    """Yield the profiles that this driver can use, by NVML's index.

    Raises GpuUnusableError: GPU lost.
    """
    for index in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = _profile_info(nvml, handle, index, label)
        if info is None:
            continue
        if info.sliceCount not in COMPUTE_PROFILES:
            _LOG.warning("%s: MIG profile %d left out: %d slices", label, index, info.sliceCount)
            continue
        raw = getattr(info, "name", "")
        name = (raw.decode("ascii", "replace") if isinstance(raw, bytes) else raw)[4:]  # MIG
        if not re.fullmatch(r"[0-9]+g\.[0-9]+gb[a-z.+-]*", name):
            name = profile_name(index, info.sliceCount, info.memorySizeMB, total_bytes)
        yield GiProfile(
            name=name,
            index=index,
            id=info.id,
            slices=info.sliceCount,
            capacity={
                "copyEngines": info.copyEngineCount,
                "decoders": info.decoderCount,
                "encoders": info.encoderCount,
                "jpegEngines": info.jpegCount,
                "memory": info.memorySizeMB * _MIB,
                "multiprocessors": info.multiprocessorCount,
                "ofaEngines": info.ofaCount,
            },
        )


def _profile_info(nvml: Any, handle: Any, index: int, label: str) -> Any:
    """Return the structure in the newest version that the driver has; None: no such profile."""
    for version in (2, 1):
        try:
            return nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, index, version=version)
        except pynvml.NVMLError as error:
            if error.value in LOST:
                raise GpuUnusableError(str(error)) from None
            if error.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND and version == 2:
                continue
            if error.value not in (
                pynvml.NVML_ERROR_NOT_SUPPORTED,
                pynvml.NVML_ERROR_INVALID_ARGUMENT,
                pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            ):
                _LOG.warning("%s: MIG profile %d left out: %s", label, index, error)
            return None
    return None


def list_placements(
    nvml: Any, handle: Any, profile: GiProfile, label: str
) -> list[tuple[int, int]]:
    """Return start and size of each placement; none if NVML does not report.

    Raises GpuUnusableError.
    """
    count = ctypes.c_uint(0)
    try:
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(
            handle, profile.id, None, ctypes.byref(count)
        )
        placements = (pynvml.c_nvmlGpuInstancePlacement_t * max(count.value, 1))()
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(
            handle, profile.id, placements, ctypes.byref(count)
        )
    except pynvml.NVMLError as error:
        if error.value in LOST:
            raise GpuUnusableError(str(error)) from None
        _LOG.warning("%s: MIG profile %s left out: %s", label, profile.name, error)
        return []
    return sorted(
        (placements[i].start, placements[i].size) for i in range(min(count.value, len(placements)))
    )
