"""Partitions of one physical device: they draw on shared counters, and some go only with some.

Counters (KEP-4815). The rule is upstream's, to the letter: after a device is added, *every* counter
of *every* counter set of its pool must cover what is consumed, so one counter that is overdrawn
already (slices can change after an allocation) keeps all devices of the pool that consume counters
from being used. Source: checkAvailableCounters in allocator_experimental.go.

Compatibility groups (KEP-5963). Per counter set the groups of all devices in use are intersected; a
device fits as long as something is left. Devices without groups go only with devices without
groups, as if they shared a group that nobody else can name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate
from typing import Final

from reference_allocator.api import CounterConsumption, Device
from reference_allocator.cluster.pools import CounterKey, Pool, PoolDevice


class CounterStock:
    """What is left of one pool's counters during a search.

    Attributes:
        left: all counters in one number, as `Pool.baseline` has them.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.left = pool.baseline()

    def covers(self, amounts: int) -> bool:
        """Whether there is enough for these amounts (see `Pool.together`)."""
        enough = self._pool.not_overdrawn
        return (self.left - amounts) & enough == enough

    def take(self, entry: PoolDevice) -> bool:
        """Charges the device; where the stock does not allow it, nothing changes."""
        drawn = self._pool.drawn(entry)
        if not self.covers(drawn):
            return False
        self.left -= drawn
        return True

    def give_back(self, entry: PoolDevice) -> None:
        self.left += self._pool.drawn(entry)


class Drawing:
    """Candidates of one pool that draw on its counters.

    Attributes:
        pool: their pool.
    """

    def __init__(self, pool: Pool, members: Mapping[int, PoolDevice]) -> None:
        self.pool = pool
        self._members = members
        self._shareable = any(entry.shareable for entry in members.values())
        self._cheapest = self._add_up() if not self._shareable else []

    def _add_up(self) -> list[int]:
        """What 1, 2, ... members draw at least, each counter by itself."""
        amounts: dict[CounterKey, list[int]] = {}
        for entry in self._members.values():
            drawn: dict[CounterKey, int] = {}
            for key, amount in entry.draws:
                drawn[key] = drawn.get(key, 0) + amount
            for key, amount in drawn.items():
                amounts.setdefault(key, []).append(amount)
        count = len(self._members)
        for drawing in amounts.values():
            drawing += [0] * (count - len(drawing))
            drawing.sort()
        return list(
            accumulate(
                self.pool.together((key, drawing[index]) for key, drawing in amounts.items())
                for index in range(count)
            )
        )

    def most(self, free: Collection[int], stock: CounterStock) -> int:
        """At most how many of the free members (positions) the counters allow together."""
        if self._shareable:
            return len(free)  # A further share draws on no counter.
        fitting = sum(stock.covers(self.pool.drawn(self._members[position])) for position in free)
        return bisect_left(
            self._cheapest, True, 0, fitting, key=lambda amounts: not stock.covers(amounts)
        )


Groups = frozenset[str] | None
"""What the devices in use on a counter set share; None while there are none."""

_UNGROUPED: Final = frozenset({""})  # No group can have an empty name.


def groups_of(consumption: CounterConsumption) -> frozenset[str]:
    return consumption.compatibility_groups or _UNGROUPED


def admits(current: Groups, groups: frozenset[str]) -> bool:
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
