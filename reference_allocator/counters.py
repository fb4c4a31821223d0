"""Shared counters: partitions of one physical device draw on the same stock (KEP-4815).

The rule is upstream's, to the letter: after a device is added, *every* counter of *every* counter
set of its pool must cover what is consumed, so one counter that is overdrawn already (slices can
change after an allocation) keeps all devices of the pool that consume counters from being used.
Source: checkAvailableCounters in allocator_experimental.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from reference_allocator.api import Device
from reference_allocator.pools import Pool
from reference_allocator.state import AllocatedState

CounterKey = tuple[str, str]
"""Counter set and counter."""


def consumption(device: Device) -> Iterator[tuple[CounterKey, int]]:
    """What the device consumes, in units of 1e-9."""
    for item in device.consumes_counters:
        for name, amount in item.counters.items():
            yield (item.counter_set, name), amount.nanos


class CounterStock:
    """What is left of one pool's counters during a search.

    Allocated devices are charged once, whether one claim has them or many share them; a device that
    is allocated but not published any more is not charged.
    """

    def __init__(self, pool: Pool, state: AllocatedState) -> None:
        self.left: dict[CounterKey, int] = {
            (counter_set, name): total
            for counter_set, counters in pool.counters.items()
            for name, total in counters.items()
        }
        for entry in (*pool.devices, *pool.other_devices):
            if state.uses(entry.id):
                for key, amount in consumption(entry.device):
                    self.left[key] -= amount
        self._overdrawn = sum(amount < 0 for amount in self.left.values())

    def take(self, device: Device) -> bool:
        """Charges the device; where the stock does not allow it, nothing changes."""
        self._add(device, -1)
        if self._overdrawn:
            self._add(device, 1)
            return False
        return True

    def give_back(self, device: Device) -> None:
        """Undoes `take`."""
        self._add(device, 1)

    def _add(self, device: Device, sign: int) -> None:
        for key, amount in consumption(device):
            before = self.left[key]
            after = before + sign * amount
            self.left[key] = after
            self._overdrawn += (after < 0) - (before < 0)
