"""Finds, makes and destroys MIG devices through NVML.

Making takes two steps, a GPU instance and a compute instance in it. If the second fails, the first
is undone; if the process dies in between, ``find_instance`` shows a GPU instance whose ``ci_id`` is
None. Destroying goes the other way round, and what is already gone is not an error. Where MIG mode
can be switched without a reset (Hopper and later) it is switched on for the first MIG device and
off after the last one.
"""

from __future__ import annotations

import ctypes
import logging
from typing import Any

import pynvml

from nvml_driver.mig.listing import (
    ROOM,
    MigError,
    find_capabilities,
    find_gpu,
    list_gpus,
    list_instances,
    read_mig_uuids,
    read_mode,
)
from nvml_driver.mig.state import MigState, same_uuid
from nvml_driver.model.inventory import MigInstance, MigPlace
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.library import GpuUnusableError, NvmlLibrary, ask_nvml, salt_uuid

__all__ = ["MigError", "NvmlPartitions"]

_LOG = logging.getLogger(__name__)


class NvmlPartitions:
    """The MIG devices of one node, as NVML has them."""

    def __init__(self, library: NvmlLibrary, roots: NodeRoots, *, salt: str | None = None) -> None:
        """Use an NVML library; ``roots.proc`` lists capability devices, ``salt`` is for UUIDs."""
        self._library = library
        self._roots = roots
        self._salt = salt if library.is_simulated else None

    def create_instance(self, place: MigPlace) -> MigInstance:
        """Make a GPU instance, and a compute instance that takes all of it. Raises MigError."""
        label = f"gpu-{place.parent_minor}: MIG {place.profile} at {place.start}"
        with self._library.open_session() as nvml:
            handle = find_gpu(nvml, place.parent_minor)
            _enable_mig(nvml, handle, label)
            placement = pynvml.c_nvmlGpuInstancePlacement_t(start=place.start, size=place.size)
            try:
                gi = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                    handle, place.gi_profile_id, ctypes.byref(placement)
                )
            except pynvml.NVMLError as error:
                _disable_if_empty(nvml, handle, label)
                raise MigError(f"{label}: the GPU instance cannot be made: {error}") from None
            try:
                gi_id = int(nvml.nvmlGpuInstanceGetInfo(gi).id)
                ci = self._create_compute_instance(nvml, gi, place)
                ci_id = int(nvml.nvmlComputeInstanceGetInfo(ci).id)
            except pynvml.NVMLError as error:
                leftover = _undo_instance(nvml, gi)
                _disable_if_empty(nvml, handle, label)
                raise MigError(f"{label}: {error}{leftover}") from None
            return self._describe_created(nvml, handle, place, gi_id, ci_id)

    def find_instance(self, place: MigPlace) -> MigInstance | None:
        """Return a MIG device, or bare GPU instance, that overlaps a place. Raises MigError."""
        with self._library.open_session() as nvml:
            handle = find_gpu(nvml, place.parent_minor)
            for instance in self._list_on_gpu(nvml, handle, place.parent_minor):
                if instance.place.overlaps(place):
                    return instance
        return None

    def destroy_instance(self, instance: MigInstance) -> None:
        """Destroy a MIG device and its GPU instance, unless they are gone. Raises MigError."""
        label = f"gpu-{instance.place.parent_minor}: GPU instance {instance.gi_id}"
        with self._library.open_session() as nvml:
            handle = find_gpu(nvml, instance.place.parent_minor)
            try:
                gi = nvml.nvmlDeviceGetGpuInstanceById(handle, instance.gi_id)
                info = nvml.nvmlGpuInstanceGetInfo(gi)
            except pynvml.NVMLError as error:
                if error.value in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED):
                    return
                raise MigError(f"{label} cannot be found: {error}") from None
            place = instance.place
            is_replaced = (info.profileId, info.placement.start) != (
                place.gi_profile_id,
                place.start,
            )
            if is_replaced or not self._is_still_there(nvml, handle, instance):
                _LOG.warning("%s is another one by now and stays", label)
                return
            leftover = _undo_instance(nvml, gi)
            if leftover:
                raise MigError(f"{label}{leftover}")
            _disable_if_empty(nvml, handle, label)

    def read_state(self) -> MigState:
        """Return modes and instances now; a GPU that cannot be asked has neither.

        Raises MigError.
        """
        modes: dict[str, bool] = {}
        instances: list[MigInstance] = []
        with self._library.open_session() as nvml:
            for minor, handle in list_gpus(nvml):
                try:
                    mode = read_mode(nvml, handle)
                    if mode == pynvml.NVML_DEVICE_MIG_ENABLE:
                        instances += self._list_on_gpu(nvml, handle, minor)
                except (MigError, pynvml.NVMLError) as error:
                    _LOG.warning("gpu-%d: %s", minor, error)
                else:
                    modes[f"gpu-{minor}"] = mode == pynvml.NVML_DEVICE_MIG_ENABLE
        return MigState(modes=modes, instances=tuple(instances))

    def _is_still_there(self, nvml: Any, handle: Any, instance: MigInstance) -> bool:
        """Return whether a GPU instance is the one that was made, not a later one in its place."""
        raw = [
            uuid
            for (gi_id, _), uuid in read_mig_uuids(nvml, handle).items()
            if gi_id == instance.gi_id
        ]
        return not raw or any(
            uuid is None or same_uuid(salt_uuid(uuid, self._salt), instance.uuid) for uuid in raw
        )

    def _create_compute_instance(self, nvml: Any, gi: Any, place: MigPlace) -> Any:
        info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(
            gi,
            place.ci_profile_index,
            pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED,
            version=1,
        )
        return nvml.nvmlGpuInstanceCreateComputeInstance(gi, info.id)

    def _describe_created(
        self, nvml: Any, handle: Any, place: MigPlace, gi_id: int, ci_id: int
    ) -> MigInstance:
        raw = read_mig_uuids(nvml, handle).get((gi_id, ci_id))
        return self.describe_instance(place, gi_id, ci_id, raw)

    def describe_instance(
        self, place: MigPlace, gi_id: int, ci_id: int | None, raw: str | None
    ) -> MigInstance:
        """Return an instance with its capability devices and salted UUID; ``raw`` is NVML's."""
        gi_cap, ci_cap = find_capabilities(self._roots.proc, place.parent_minor, gi_id, ci_id)
        return MigInstance(
            place=place,
            gi_id=gi_id,
            ci_id=ci_id,
            uuid=None if raw is None else salt_uuid(raw, self._salt),
            gi_capability=gi_cap,
            ci_capability=ci_cap,
        )

    def _list_on_gpu(self, nvml: Any, handle: Any, minor: int) -> list[MigInstance]:
        try:
            memory = ask_nvml(f"gpu-{minor}", "memory", nvml.nvmlDeviceGetMemoryInfo, handle)
            total = 0 if memory is None else int(memory.total)
            return [
                self.describe_instance(*fields)
                for fields in list_instances(nvml, handle, minor, total)
            ]
        except GpuUnusableError as error:
            raise MigError(f"its MIG devices cannot be listed: {error}") from None


def _enable_mig(nvml: Any, handle: Any, label: str) -> None:
    try:
        if nvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE:
            return
        status = nvml.nvmlDeviceSetMigMode(handle, pynvml.NVML_DEVICE_MIG_ENABLE)
        now = nvml.nvmlDeviceGetMigMode(handle)[0]
    except pynvml.NVMLError as error:
        raise MigError(f"{label}: MIG mode cannot be enabled: {error}") from None
    if now != pynvml.NVML_DEVICE_MIG_ENABLE:
        raise MigError(
            f"{label}: MIG mode is only pending (NVML status {status}); reset the GPU with "
            "nvidia-smi --gpu-reset, or stop what uses it"
        )
    _LOG.info("%s: MIG mode is enabled now", label)


def _disable_if_empty(nvml: Any, handle: Any, label: str) -> None:
    """Switch MIG mode off if no MIG device is left, and only where that needs no reset.

    The GPU can be used as a whole again.
    """
    try:
        if nvml.nvmlDeviceGetArchitecture(handle) < pynvml.NVML_DEVICE_ARCH_HOPPER:
            return
        if any(True for _ in list_instances(nvml, handle, 0)):
            return
        nvml.nvmlDeviceSetMigMode(handle, pynvml.NVML_DEVICE_MIG_DISABLE)
    except (pynvml.NVMLError, GpuUnusableError) as error:
        _LOG.warning("%s: MIG mode stays enabled: %s", label, error)


def _undo_instance(nvml: Any, gi: Any) -> str:
    """Destroy a GPU instance and what is in it.

    Returns the end of an error message that says what is left, ``""`` if nothing is.
    """
    try:
        for index in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
            for ci in _list_compute_instances(nvml, gi, index):
                nvml.nvmlComputeInstanceDestroy(ci)
        nvml.nvmlGpuInstanceDestroy(gi)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_FOUND:
            return ""
        return f"; its GPU instance cannot be destroyed: {error}"
    return ""


def _list_compute_instances(nvml: Any, gi: Any, index: int) -> list[Any]:
    handles = (pynvml.c_nvmlComputeInstance_t * ROOM)()
    count = ctypes.c_uint(ROOM)
    try:
        info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(
            gi, index, pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, version=1
        )
        nvml.nvmlGpuInstanceGetComputeInstances(gi, info.id, handles, ctypes.byref(count))
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT):
            return []  # no such profile in this GPU instance
        raise
    return list(handles[: min(count.value, ROOM)])
