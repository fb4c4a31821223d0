"""Shared counters: partitions of one physical device draw on the same stock (KEP-4815).

The rule is upstream's, to the letter: after a device is added, *every* counter of *every* counter
set of its pool must cover what is consumed, so one counter that is overdrawn already (slices can
change after an allocation) keeps all devices of the pool that consume counters from being used.
Source: checkAvailableCounters in allocator_experimental.go.
"""

from __future__ import annotations

from reference_allocator.cluster.pools import CounterKey, Pool, PoolDevice


class CounterStock:
    """What is left of one pool's counters during a search."""

    __slots__ = ("_overdrawn", "left")

    def __init__(self, pool: Pool) -> None:
        self.left: dict[CounterKey, int] = pool.baseline().copy()
        self._overdrawn = sum(amount < 0 for amount in self.left.values())

    def take(self, entry: PoolDevice) -> bool:
        """Charges the device; where the stock does not allow it, nothing changes."""
        self._add(entry, -1)
        if self._overdrawn:
            self._add(entry, 1)
            return False
        return True

    def give_back(self, entry: PoolDevice) -> None:
        """Undoes `take`."""
        self._add(entry, 1)

    def _add(self, entry: PoolDevice, sign: int) -> None:
        left = self.left
        for key, amount in entry.draws:
            before = left[key]
            after = left[key] = before + sign * amount
            if (after < 0) != (before < 0):
                self._overdrawn += 1 if after < 0 else -1
