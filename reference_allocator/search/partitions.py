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
from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import accumulate
from typing import Final

from reference_allocator.api import CounterConsumption, Device
from reference_allocator.cluster.pools import CounterKey, Pool, PoolDevice

Moment = tuple[int, Mapping[str, frozenset[str]]]
"""What was left of a pool's counters, and counter set -> the groups in use on it."""


class CounterStock:
    """The remainder of one pool's counters during a search, and the groups in use on them.

    Attributes:
        remainder: all counters in one number, as `Pool.pack_remainder` has them.
    """

    def __init__(self, pool: Pool, *, with_groups: bool = False) -> None:
        self._pool = pool
        self._with_groups = with_groups
        # A counter that goes below zero borrows the bit that it has here.
        self._enough = pool.not_overdrawn
        self.remainder = pool.pack_remainder()
        self._groups: Mapping[str, frozenset[str]] = {}
        if with_groups:
            all_devices = (*pool.devices, *pool.other_devices)
            self._groups = groups_in_use(item.device for item in all_devices if item.use.used)

    @property
    def key(self) -> Hashable:
        """Return a value that is equal for moments at which the same is left."""
        return id(self._pool), self.remainder, frozenset(self._groups.items())

    def covers(self, amounts: int) -> bool:
        """Return whether there is enough for these amounts (see `Pool.pack_amounts`)."""
        return (self.remainder - amounts) & self._enough == self._enough

    def take(self, entry: PoolDevice) -> Moment | None:
        """Charge the device and join its groups; return what was before, for `go_back`.

        Returns None, with nothing changed, where that would overdraw or groups do not go together.
        """
        remainder = self.remainder - self._pool.pack_draws(entry)
        if remainder & self._enough != self._enough:
            return None
        before = self.remainder, self._groups
        if self._with_groups:
            groups = dict(self._groups)
            for consumption in entry.device.consumes_counters:
                current, added = groups.get(consumption.counter_set), groups_of(consumption)
                if not admits_groups(current, added):
                    return None
                groups[consumption.counter_set] = join_groups(current, added)
            self._groups = groups
        self.remainder = remainder
        return before

    def go_back(self, moment: Moment) -> None:
        """Undo the last `take`, which has returned this moment."""
        self.remainder, self._groups = moment


class Drawing:
    """The candidates of one pool that draw on its counters.

    Attributes:
        pool: their pool.
    """

    def __init__(self, pool: Pool, members: Mapping[int, PoolDevice]) -> None:
        self.pool = pool
        self._members = members
        self._shareable = any(entry.shareable for entry in members.values())
        self._cheapest = self._add_up() if not self._shareable else []

    def _add_up(self) -> list[int]:
        """Return what 1, 2, ... members draw at least, each counter by itself."""
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
                self.pool.pack_amounts((key, drawing[index]) for key, drawing in amounts.items())
                for index in range(count)
            )
        )

    def count_allowed(self, free: Collection[int], stock: CounterStock) -> int:
        """Return at most how many of the free members (positions) the counters allow together."""
        if self._shareable:
            return len(free)  # A further share draws on no counter.
        fitting = sum(
            stock.covers(self.pool.pack_draws(self._members[position])) for position in free
        )
        return bisect_left(
            self._cheapest, True, 0, fitting, key=lambda amounts: not stock.covers(amounts)
        )


Groups = frozenset[str] | None
"""The groups that all devices in use on a counter set share; None while there are none."""

_UNGROUPED: Final = frozenset({""})  # No group can have an empty name.


def groups_of(consumption: CounterConsumption) -> frozenset[str]:
    """Return the compatibility groups of a device on a counter set."""
    return consumption.compatibility_groups or _UNGROUPED


def admits_groups(current: Groups, groups: frozenset[str]) -> bool:
    """Return whether a device with these groups goes with those in use."""
    return current is None or bool(current & groups)


def join_groups(current: Groups, groups: frozenset[str]) -> frozenset[str]:
    """Return the groups shared on a counter set once a device with these groups is on it.

    Where devices with and without groups are in use together already (slices can change after an
    allocation was made), those that came first decide, as upstream has it.
    """
    if current is None:
        return groups
    if _UNGROUPED in (current, groups):
        return current
    return current & groups


def groups_in_use(devices: Iterable[Device]) -> dict[str, frozenset[str]]:
    """Return counter set -> the groups that devices of one pool, all in use, share there."""
    shared: dict[str, frozenset[str]] = {}
    for device in devices:
        for consumption in device.consumes_counters:
            name = consumption.counter_set
            shared[name] = join_groups(shared.get(name), groups_of(consumption))
    return shared
