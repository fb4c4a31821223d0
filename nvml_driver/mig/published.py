"""Decides what a GPU publishes in MIG mode: MIG devices that exist, and those that could be made.

A MIG device that this driver did not make is published as it is (static), without counters: it is
there whether it is allocated or not. What it takes of the GPU is no longer there to be shared, so
with dynamic MIG

- partitions that overlap it are not published, nor is the GPU as a whole,
- the counter set has only what it leaves.

Each profile in each of its placements is a device that shares counters (KEP-4815): for a GPU one
counter for each kind of engine and each memory slice, so that two devices in the same place cannot
be allocated together. Names and numbers as in kubernetes-sigs/dra-driver-nvidia-gpu,
``partitions.go``.

One that this driver made for a claim is what a published partition became; its counters are taken
by the claim's allocation.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nvml_driver.mig import profiles as migprofiles
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.mig.listing import list_instances
from nvml_driver.mig.profiles import device_name, list_profiles
from nvml_driver.model.inventory import (
    Attribute,
    CounterConsumption,
    CounterSet,
    Device,
    MigInstance,
    MigPlace,
)

MAX_COUNTERS = 32  # ``ResourceSliceMaxCountersPerCounterSet`` of the API.


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A GPU as devices that share counters.

    Attributes:
        whole: all of it; to be published only where nobody else has a part of it.
        parts: the partitions whose place is free of others' MIG devices.
    """

    whole: Device
    partitions: tuple[Device, ...]
    counters: CounterSet


def partition_gpu(
    nvml: Any, handle: Any, gpu: Device, total_bytes: int, taken_places: Sequence[MigPlace] = ()
) -> Partitioned | None:
    """Return the GPU as a whole, its partitions, and the counter set that they share.

    ``taken_places`` are those of MIG devices that are not for this driver to share out, one for
    each compute instance, so that a place may be there several times. None if NVML reports no
    profile.
    Raises GpuUnusableError: the GPU is lost.
    """
    assert gpu.minor is not None
    label = gpu.name
    places = [
        (profile, profile.place_at(gpu.minor, start, size))
        for profile in migprofiles.list_profiles(nvml, handle, label, total_bytes)
        for start, size in migprofiles.list_placements(nvml, handle, profile, label)
    ]
    if not places:
        return None
    slices = max(place.start + place.size for _, place in places)
    if slices > MAX_COUNTERS - len(places[0][0].capacity):
        _LOG.warning("%s: %d memory slices are more than a counter set can hold", label, slices)
        return None
    maxima = {
        name: max(profile.capacity[name] for profile, _ in places) for name in places[0][0].capacity
    }
    available = _counters_of(maxima, 0, slices)
    capacities = {profile.id: profile.capacity for profile, _ in places}
    for place in dict.fromkeys(taken_places):
        used = _counters_of(capacities.get(place.gi_profile_id, {}), place.start, place.size)
        available = {name: max(0, amount - used.get(name, 0)) for name, amount in available.items()}
    counters = CounterSet(f"{gpu.name}-counter-set", available)
    whole = replace(
        gpu,
        capacity=maxima,
        consumes_counters=(CounterConsumption(counters.name, _counters_of(maxima, 0, slices)),),
    )
    partitions = []
    for profile, place in places:
        needed = _counters_of(profile.capacity, place.start, place.size)
        if any(amount > available[name] for name, amount in needed.items()):
            continue  # its place is taken, or others have the engines that it needs
        partitions.append(
            Device(
                kind="mig-partition",
                name=migprofiles.device_name(place),
                parent=gpu.name,
                minor=gpu.minor,
                uuid=None,
                pci_bus_id=gpu.pci_bus_id,
                attributes=derive_mig_attributes(gpu, profile.name, None),
                capacity=profile.capacity,
                place=place,
                consumes_counters=(CounterConsumption(counters.name, needed),),
            )
        )
    return Partitioned(whole, tuple(partitions), counters)


def derive_mig_attributes(gpu: Device, profile: str, uuid: str | None) -> dict[str, Attribute]:
    """Return the attributes of a MIG device, which are the GPU's but for UUID and profile."""
    attributes = {name: value for name, value in gpu.attributes.items() if name != "uuid"}
    attributes["type"] = Attribute("string", "mig")
    attributes["profile"] = Attribute("string", profile)
    if gpu.uuid is not None:
        attributes["parentUUID"] = Attribute("string", gpu.uuid)
    if uuid is not None:
        attributes["uuid"] = Attribute("string", uuid)
    return dict(sorted(attributes.items()))


def _counters_of(capacity: Mapping[str, int], start: int, size: int) -> dict[str, int]:
    """Return capacities as counters, named in kebab case, and a counter for each memory slice."""
    named = {_to_kebab_case(name): amount for name, amount in sorted(capacity.items())}
    return named | {f"memory-slice-{at}": 1 for at in range(start, start + size)}


def _to_kebab_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DiscoveredGpu:
    """A GPU, and what discovery must know of it that is not published.

    Attributes:
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
    """The devices that a GPU publishes, and what belongs to them.

    Attributes:
        devices: in the order in which they are published.
        foreign: MIG devices that somebody else made, also those that cannot be published.
    """

    devices: list[Device] = field(default_factory=list)
    counter_sets: list[CounterSet] = field(default_factory=list)
    foreign: list[MigInstance] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def publish_mig_devices(
    nvml: Any,
    discovered: DiscoveredGpu,
    partitions: NvmlPartitions,
    *,
    dynamic: bool,
    is_own: Callable[[MigInstance], bool],
) -> MigDevices:
    """Return what is published of a GPU that is, or could be, in MIG mode.

    With ``dynamic`` also what could be made; ``is_own``: whether a MIG device is what a partition
    became, and so no device of its own.
    Raises GpuUnusableError: the GPU is lost.
    """
    gpu = discovered.device
    assert gpu.minor is not None
    result = MigDevices()
    if discovered.mig_enabled:
        instances = list_instances(nvml, discovered.handle, gpu.minor, discovered.memory)
        result.foreign = [
            instance
            for instance in (partitions.describe_instance(*fields) for fields in instances)
            if not is_own(instance)
        ]
    if dynamic:
        taken_places = [instance.place for instance in result.foreign]
        partitioned = partition_gpu(nvml, discovered.handle, gpu, discovered.memory, taken_places)
        if partitioned is not None:
            if discovered.repartitions and not taken_places:
                result.devices.append(partitioned.whole)
            result.devices += partitioned.partitions
            if partitioned.partitions:
                result.counter_sets.append(partitioned.counters)
        elif not discovered.mig_enabled:
            result.devices.append(gpu)
    result.devices += _describe_foreign(nvml, discovered, result)
    return result


def _describe_foreign(nvml: Any, discovered: DiscoveredGpu, result: MigDevices) -> Iterator[Device]:
    """Yield devices for somebody else's MIG devices; note those left out in ``result``."""
    gpu, foreign = discovered.device, result.foreign
    capacities = {
        profile.id: profile.capacity
        for profile in (
            list_profiles(nvml, discovered.handle, gpu.name, discovered.memory) if foreign else ()
        )
    }
    for instance in foreign:
        name = device_name(instance.place)
        reason = _explain_unusable(instance, foreign)
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
            attributes=derive_mig_attributes(gpu, place.profile, instance.uuid),
            capacity={**capacities.get(place.gi_profile_id, {}), **slices},
            place=place,
            instance=instance,
        )


def _explain_unusable(instance: MigInstance, foreign: Sequence[MigInstance]) -> str:
    """Say why a MIG device of somebody else cannot be published; ``""`` if it can."""
    if instance.ci_id is None:
        return "its GPU instance has no compute instance"
    if sum(other.gi_id == instance.gi_id for other in foreign) > 1:
        return "its GPU instance is split into several compute instances"
    return ""
