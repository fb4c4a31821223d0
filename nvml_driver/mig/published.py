"""What a GPU publishes in MIG mode: the MIG devices that are there, and those that could be made.

A MIG device that this driver did not make is published as it is (static), without counters: it is
there whether it is allocated or not. What it takes of the GPU is no longer there to be shared, so
with dynamic MIG

- partitions that overlap it are not published, nor is the GPU as a whole,
- the counter set has only what it leaves.

One that this driver made for a claim is what a published partition became; its counters are taken
by the claim's allocation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nvml_driver.mig.dynamic import mig_attributes, partition
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.mig.listing import instances
from nvml_driver.mig.profiles import device_name, profiles
from nvml_driver.model.inventory import CounterSet, Device, MigInstance

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AskedGpu:
    """A GPU, and what discovery must know of it that is not published.

    Attributes:
        handle: NVML's, of the session in which it was asked.
        memory: bytes, 0 where NVML does not report.
        repartitions: MIG mode can be switched on and off while the GPU is there.
    """

    device: Device
    handle: Any
    memory: int
    mig_enabled: bool
    repartitions: bool


@dataclass(slots=True)
class MigDevices:
    """What a GPU publishes.

    Attributes:
        devices: in the order in which they are published.
        counter_sets: at most one, of what partitions share.
        foreign: MIG devices that somebody else made, also those that cannot be published.
    """

    devices: list[Device] = field(default_factory=list)
    counter_sets: list[CounterSet] = field(default_factory=list)
    foreign: list[MigInstance] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def mig_devices(
    nvml: Any,
    asked: AskedGpu,
    partitions: NvmlPartitions,
    *,
    dynamic: bool,
    is_own: Callable[[MigInstance], bool],
) -> MigDevices:
    """What is published of a GPU that is, or could be, in MIG mode.

    With ``dynamic`` also what could be made; ``is_own``: whether a MIG device is what a partition
    became, and so no device of its own.

    Raises:
        GpuUnusableError: the GPU is lost.
    """
    gpu = asked.device
    assert gpu.minor is not None
    result = MigDevices()
    if asked.mig_enabled:
        there = instances(nvml, asked.handle, gpu.minor, asked.memory)
        result.foreign = [
            instance
            for instance in (partitions.make(*found) for found in there)
            if not is_own(instance)
        ]
    if dynamic:
        taken = [instance.place for instance in result.foreign]
        parted = partition(nvml, asked.handle, gpu, asked.memory, taken)
        if parted is not None:
            if asked.repartitions and not taken:
                result.devices.append(parted.whole)
            result.devices += parted.parts
            if parted.parts:
                result.counter_sets.append(parted.counters)
        elif not asked.mig_enabled:
            result.devices.append(gpu)
    result.devices += _static(nvml, asked, result)
    return result


def _static(nvml: Any, asked: AskedGpu, result: MigDevices) -> Iterator[Device]:
    """The MIG devices that somebody else has made."""
    gpu, foreign = asked.device, result.foreign
    capacities = {
        profile.id: profile.capacity
        for profile in (profiles(nvml, asked.handle, gpu.name, asked.memory) if foreign else ())
    }
    for instance in foreign:
        name = device_name(instance.place)
        reason = _unusable(instance, foreign)
        if reason:
            result.left_out.append((name, reason))
            continue
        place = instance.place
        if place.gi_profile_id not in capacities:
            _LOG.warning("%s is published without its profile's capacity: not reported", name)
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


def _unusable(instance: MigInstance, foreign: Sequence[MigInstance]) -> str:
    if instance.ci_id is None:
        return "its GPU instance has no compute instance"
    if sum(other.gi_id == instance.gi_id for other in foreign) > 1:
        return "its GPU instance is split into several compute instances"
    return ""
