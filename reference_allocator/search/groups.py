"""Compatibility groups: which partitions of one device may be in use together (KEP-5963).

Per counter set the groups of all devices in use are intersected; a device fits as long as something
is left. Devices without groups go only with devices without groups, as if they shared a group that
nobody else can name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reference_allocator.api import CounterConsumption, Device

Groups = frozenset[str] | None
"""What the devices in use on a counter set share; None while there are none."""

_UNGROUPED: Final = frozenset({""})  # No group can have an empty name.


def groups_of(consumption: CounterConsumption) -> frozenset[str]:
    """The groups of a device on one counter set."""
    return consumption.compatibility_groups or _UNGROUPED


def admits(current: Groups, groups: frozenset[str]) -> bool:
    """Whether a device with these groups can join the counter set."""
    return current is None or bool(current & groups)


def join(current: Groups, groups: frozenset[str]) -> frozenset[str]:
    """What is shared on the counter set with the device on it.

    Where devices with and without groups are in use together already (slices can change after an
    allocation was made), those that came first decide, as upstream has it.
    """
    if current is None:
        return groups
    if _UNGROUPED in (current, groups):
        return current
    return current & groups


def groups_in_use(devices: Iterable[Device]) -> dict[str, frozenset[str]]:
    """Counter set -> what the given devices of one pool, all in use, share there."""
    shared: dict[str, frozenset[str]] = {}
    for device in devices:
        for consumption in device.consumes_counters:
            name = consumption.counter_set
            shared[name] = join(shared.get(name), groups_of(consumption))
    return shared
