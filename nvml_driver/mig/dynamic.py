"""What a GPU could be partitioned into, as devices that share counters (KEP-4815).

Each profile in each of its placements is a device; preparing it makes it. One counter set for a GPU
holds the most of each kind of engine that a MIG profile can have, and one counter for each memory
slice, so that two devices in the same place cannot be allocated together. The GPU as a whole takes
all. What MIG devices that somebody else made have is not there to be shared. Names and numbers as
kubernetes-sigs/dra-driver-nvidia-gpu has them, ``partitions.go``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nvml_driver.mig import profiles as migprofiles
from nvml_driver.model.inventory import Attribute, CounterConsumption, CounterSet, Device, MigPlace

_LOG = logging.getLogger(__name__)
MAX_COUNTERS = 32
"""``ResourceSliceMaxCountersPerCounterSet`` of the API."""


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A GPU as devices that share counters.

    Attributes:
        whole: all of it; to be published only where nobody else has a part of it.
        parts: the partitions whose place is free of others' MIG devices.
        counters: what they share.
    """

    whole: Device
    parts: tuple[Device, ...]
    counters: CounterSet


def partition(
    nvml: Any, handle: Any, gpu: Device, total_bytes: int, taken: Sequence[MigPlace] = ()
) -> Partitioned | None:
    """The GPU as a whole, its partitions, and the counter set that they share.

    ``taken`` are places of MIG devices that are not for this driver to share out, one for each
    compute instance, so that a place may be there several times. None if NVML reports no profile.

    Raises:
        GpuUnusableError: the GPU is lost.
    """
    assert gpu.minor is not None
    who = gpu.name
    places = [
        (profile, profile.place(gpu.minor, start, size))
        for profile in migprofiles.profiles(nvml, handle, who, total_bytes)
        for start, size in migprofiles.placements(nvml, handle, profile, who)
    ]
    if not places:
        return None
    slices = max(place.start + place.size for _, place in places)
    if slices > MAX_COUNTERS - len(places[0][0].capacity):
        _LOG.warning("%s: %d memory slices are more than a counter set can hold", who, slices)
        return None
    most = {
        name: max(profile.capacity[name] for profile, _ in places) for name in places[0][0].capacity
    }
    left = _counters(most, 0, slices)
    capacities = {profile.id: profile.capacity for profile, _ in places}
    for place in dict.fromkeys(taken):
        used = _counters(capacities.get(place.gi_profile_id, {}), place.start, place.size)
        left = {name: max(0, amount - used.get(name, 0)) for name, amount in left.items()}
    counters = CounterSet(f"{gpu.name}-counter-set", left)
    whole = replace(
        gpu,
        capacity=most,
        consumes_counters=(CounterConsumption(counters.name, _counters(most, 0, slices)),),
    )
    parts = []
    for profile, place in places:
        needed = _counters(profile.capacity, place.start, place.size)
        if any(amount > left[name] for name, amount in needed.items()):
            continue  # its place is taken, or others have the engines that it needs
        parts.append(
            Device(
                kind="mig-partition",
                name=migprofiles.device_name(place),
                parent=gpu.name,
                minor=gpu.minor,
                uuid=None,
                pci_bus_id=gpu.pci_bus_id,
                attributes=mig_attributes(gpu, profile.name, None),
                capacity=profile.capacity,
                place=place,
                consumes_counters=(CounterConsumption(counters.name, needed),),
            )
        )
    return Partitioned(whole, tuple(parts), counters)


def mig_attributes(gpu: Device, profile: str, uuid: str | None) -> dict[str, Attribute]:
    """The GPU's attributes, as those of a MIG device of it."""
    found = {name: value for name, value in gpu.attributes.items() if name != "uuid"}
    found["type"] = Attribute("string", "mig")
    found["profile"] = Attribute("string", profile)
    if gpu.uuid is not None:
        found["parentUUID"] = Attribute("string", gpu.uuid)
    if uuid is not None:
        found["uuid"] = Attribute("string", uuid)
    return dict(sorted(found.items()))


def _counters(capacity: Mapping[str, int], start: int, size: int) -> dict[str, int]:
    """Capacity names in kebab case, and a counter for each memory slice."""
    named = {_kebab(name): amount for name, amount in sorted(capacity.items())}
    return named | {f"memory-slice-{at}": 1 for at in range(start, start + size)}


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
