"""MIG devices that exist: finding them, making one, destroying one.

Making takes two steps, a GPU instance and a compute instance in it. If the second fails, the first
is undone; if the process dies in between, ``find`` shows a GPU instance whose ``ci_id`` is None.
Destroying goes the other way round, and what is gone already is no error. Where MIG mode can be
switched without a reset (Hopper and later) it is switched on for the first MIG device and off after
the last one.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
from collections.abc import Iterator
from typing import Any

import pynvml

from nvml_driver import migcaps
from nvml_driver.asking import GpuUnusableError, ask
from nvml_driver.errors import DriverError
from nvml_driver.inventory import MigInstance, MigPlace
from nvml_driver.library import NvmlLibrary
from nvml_driver.migprofiles import profiles
from nvml_driver.roots import NodeRoots
from nvml_driver.uuids import salted

_LOG = logging.getLogger(__name__)
_ROOM = 16  # more GPU instances of one profile than any GPU has


class MigError(DriverError):
    """A MIG device cannot be made, found or destroyed; the message says where and why."""


class NvmlPartitions:
    """The MIG devices of one node."""

    def __init__(self, library: NvmlLibrary, roots: NodeRoots, *, salt: str | None = None) -> None:
        """Use an NVML; ``roots.proc`` tells the capability devices, ``salt`` as in ``discover``."""
        self._library = library
        self._roots = roots
        self._salt = salt if library.is_simulated else None

    def create(self, place: MigPlace) -> MigInstance:
        """Make a MIG device: a GPU instance, and one compute instance that takes all of it.

        Raises:
            MigError: it cannot be made; nothing of it is left, or the message says what is.
        """
        what = f"gpu-{place.parent_minor}: MIG {place.profile} at {place.start}"
        with self._library.session() as nvml:
            handle = _gpu(nvml, place.parent_minor)
            _enable(nvml, handle, what)
            wanted = pynvml.c_nvmlGpuInstancePlacement_t(start=place.start, size=place.size)
            try:
                gi = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                    handle, place.gi_profile_id, ctypes.byref(wanted)
                )
            except pynvml.NVMLError as error:
                _disable_if_empty(nvml, handle, what)
                raise MigError(f"{what}: the GPU instance cannot be made: {error}") from None
            try:
                gi_id = int(nvml.nvmlGpuInstanceGetInfo(gi).id)
                ci = self._create_ci(nvml, gi, place)
                ci_id = int(nvml.nvmlComputeInstanceGetInfo(ci).id)
            except pynvml.NVMLError as error:
                left = _undo(nvml, gi)
                _disable_if_empty(nvml, handle, what)
                raise MigError(f"{what}: {error}{left}") from None
            return self._instance(nvml, handle, place, gi_id, ci_id)

    def find(self, place: MigPlace) -> MigInstance | None:
        """The MIG device in a place, or the GPU instance there without a compute instance.

        Raises:
            MigError: NVML cannot be asked.
        """
        with self._library.session() as nvml:
            handle = _gpu(nvml, place.parent_minor)
            for instance in self._on(nvml, handle, place.parent_minor):
                there = instance.place
                if (
                    there.start < place.start + place.size
                    and place.start < there.start + there.size
                ):
                    return instance
        return None

    def destroy(self, instance: MigInstance) -> None:
        """Destroy a MIG device with its GPU instance; nothing happens if it is not there.

        Raises:
            MigError: it is in use, or NVML fails.
        """
        what = f"gpu-{instance.place.parent_minor}: GPU instance {instance.gi_id}"
        with self._library.session() as nvml:
            handle = _gpu(nvml, instance.place.parent_minor)
            try:
                gi = nvml.nvmlDeviceGetGpuInstanceById(handle, instance.gi_id)
                info = nvml.nvmlGpuInstanceGetInfo(gi)
            except pynvml.NVMLError as error:
                if error.value in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED):
                    return
                raise MigError(f"{what} cannot be found: {error}") from None
            place = instance.place
            if (info.profileId, info.placement.start) != (place.gi_profile_id, place.start):
                _LOG.warning("%s is another one by now and stays", what)
                return
            left = _undo(nvml, gi)
            if left:
                raise MigError(f"{what}{left}")
            _disable_if_empty(nvml, handle, what)

    def all(self) -> tuple[MigInstance, ...]:
        """What exists on all GPUs that can be asked, also what others made."""
        found: list[MigInstance] = []
        with self._library.session() as nvml:
            for minor, handle in _gpus(nvml):
                try:
                    found += self._on(nvml, handle, minor)
                except MigError as error:
                    _LOG.warning("gpu-%d: %s", minor, error)
        return tuple(found)

    def _create_ci(self, nvml: Any, gi: Any, place: MigPlace) -> Any:
        info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(
            gi,
            place.ci_profile_index,
            pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED,
            version=1,
        )
        return nvml.nvmlGpuInstanceCreateComputeInstance(gi, info.id)

    def _instance(
        self, nvml: Any, handle: Any, place: MigPlace, gi_id: int, ci_id: int
    ) -> MigInstance:
        told = mig_uuids(nvml, handle).get((gi_id, ci_id))
        return self.make(place, gi_id, ci_id, told)

    def make(self, place: MigPlace, gi_id: int, ci_id: int | None, told: str | None) -> MigInstance:
        """The value for an instance that NVML has shown."""
        gi_cap, ci_cap = migcaps.minors(self._roots.proc, place.parent_minor, gi_id, ci_id)
        return MigInstance(
            place=place,
            gi_id=gi_id,
            ci_id=ci_id,
            uuid=None if told is None else salted(told, self._salt),
            gi_capability=gi_cap,
            ci_capability=ci_cap,
        )

    def _on(self, nvml: Any, handle: Any, minor: int) -> list[MigInstance]:
        try:
            memory = ask(f"gpu-{minor}", "memory", nvml.nvmlDeviceGetMemoryInfo, handle)
            total = 0 if memory is None else int(memory.total)
            return [self.make(*found) for found in instances(nvml, handle, minor, total)]
        except GpuUnusableError as error:
            raise MigError(f"its MIG devices cannot be listed: {error}") from None


def instances(
    nvml: Any, handle: Any, minor: int, total_bytes: int = 0
) -> Iterator[tuple[MigPlace, int, int | None, str | None]]:
    """Place, ids and UUID of each GPU instance; one entry for each compute instance in it.

    Raises:
        GpuUnusableError: the GPU is lost.
    """
    uuids = mig_uuids(nvml, handle)
    for profile in profiles(nvml, handle, f"gpu-{minor}", total_bytes):
        for gi in _gpu_instances(nvml, handle, profile.id):
            try:
                info = nvml.nvmlGpuInstanceGetInfo(gi)
            except pynvml.NVMLError as error:
                _LOG.warning("gpu-%d: a GPU instance of %s: %s", minor, profile.name, error)
                continue
            place = profile.place(minor, info.placement.start, info.placement.size)
            within = sorted(ci for gi_id, ci in uuids if gi_id == info.id)
            for ci in within:
                yield place, int(info.id), ci, uuids[int(info.id), ci]
            if not within:
                yield place, int(info.id), None, None


def _gpu_instances(nvml: Any, handle: Any, profile_id: int) -> list[Any]:
    found = (pynvml.c_nvmlGpuInstance_t * _ROOM)()
    count = ctypes.c_uint(_ROOM)
    try:
        nvml.nvmlDeviceGetGpuInstances(handle, profile_id, found, ctypes.byref(count))
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_NOT_SUPPORTED:  # MIG is off
            _LOG.warning("GPU instances cannot be listed: %s", error)
        return []
    return list(found[: min(count.value, _ROOM)])


def mig_uuids(nvml: Any, handle: Any) -> dict[tuple[int, int], str | None]:
    """GPU instance and compute instance to the MIG device's UUID, as NVML tells it."""
    found: dict[tuple[int, int], str | None] = {}
    try:
        count = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except pynvml.NVMLError:
        return found
    for index in range(min(count, 64)):
        try:
            device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            key = (
                nvml.nvmlDeviceGetGpuInstanceId(device),
                nvml.nvmlDeviceGetComputeInstanceId(device),
            )
        except pynvml.NVMLError:
            continue  # no device at this index
        found[key] = None
        with contextlib.suppress(pynvml.NVMLError):
            found[key] = str(nvml.nvmlDeviceGetUUID(device))
    return found


def _gpus(nvml: Any) -> Iterator[tuple[int, Any]]:
    try:
        count = nvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        raise MigError(f"NVML does not count its GPUs: {error}") from None
    for index in range(count):
        with contextlib.suppress(pynvml.NVMLError):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            minor = int(nvml.nvmlDeviceGetMinorNumber(handle))
            yield minor, handle


def _gpu(nvml: Any, minor: int) -> Any:
    for found, handle in _gpus(nvml):
        if found == minor:
            return handle
    raise MigError(f"gpu-{minor} is not there any more, or NVML has lost it")


def _enable(nvml: Any, handle: Any, what: str) -> None:
    try:
        if nvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE:
            return
        status = nvml.nvmlDeviceSetMigMode(handle, pynvml.NVML_DEVICE_MIG_ENABLE)
        now = nvml.nvmlDeviceGetMigMode(handle)[0]
    except pynvml.NVMLError as error:
        raise MigError(f"{what}: MIG mode cannot be enabled: {error}") from None
    if now != pynvml.NVML_DEVICE_MIG_ENABLE:
        raise MigError(
            f"{what}: MIG mode is only pending (NVML status {status}); reset the GPU with "
            "nvidia-smi --gpu-reset, or stop what uses it"
        )
    _LOG.info("%s: MIG mode is enabled now", what)


def _disable_if_empty(nvml: Any, handle: Any, what: str) -> None:
    """Back to a GPU that can be used as a whole; only where that needs no reset."""
    try:
        if nvml.nvmlDeviceGetArchitecture(handle) < pynvml.NVML_DEVICE_ARCH_HOPPER:
            return
        if any(True for _ in instances(nvml, handle, 0)):
            return
        nvml.nvmlDeviceSetMigMode(handle, pynvml.NVML_DEVICE_MIG_DISABLE)
    except (pynvml.NVMLError, GpuUnusableError) as error:
        _LOG.warning("%s: MIG mode stays enabled: %s", what, error)


def _undo(nvml: Any, gi: Any) -> str:
    """Destroy a GPU instance and what is in it; what to say of what is left, else nothing."""
    try:
        for index in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
            for ci in _compute_instances(nvml, gi, index):
                nvml.nvmlComputeInstanceDestroy(ci)
        nvml.nvmlGpuInstanceDestroy(gi)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_FOUND:
            return ""
        return f"; its GPU instance cannot be destroyed: {error}"
    return ""


def _compute_instances(nvml: Any, gi: Any, index: int) -> list[Any]:
    found = (pynvml.c_nvmlComputeInstance_t * _ROOM)()
    count = ctypes.c_uint(_ROOM)
    try:
        info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(
            gi, index, pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, version=1
        )
        nvml.nvmlGpuInstanceGetComputeInstances(gi, info.id, found, ctypes.byref(count))
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT):
            return []  # no such profile in this GPU instance
        raise
    return list(found[: min(count.value, _ROOM)])
