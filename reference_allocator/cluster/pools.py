"""Pools of devices as the search sees them, with what is known about each device.

`reference_allocator.cluster.gathering` makes them from slices; what is known about a device stays
with it as long as its content does, since many nodes and decisions ask the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from reference_allocator.api import Attribute, Device, DeviceId, PoolId, ResourceSlice
from reference_allocator.cel import CelDevice
from reference_allocator.cluster.state import DeviceUse, PoolUse
from reference_allocator.rules.capacity import Consumption
from reference_allocator.rules.constraints import Key

CounterKey = tuple[str, str]
"""The names of a counter set and of a counter in it."""

_BYTES: Final = 16
"""The fewest bytes for one counter of a pool: an int64 in units of 1e-9 needs 12."""
_ROOM: Final = 4
"""The bytes beyond the largest amount, so that the amounts of all devices can be added up."""


@dataclass(slots=True, eq=False)
class DeviceFacts:
    """The results computed about one device, kept as long as its content stays the same.

    Attributes:
        cel: the device as CEL sees it.
        outcomes: CEL expression -> what it says about the device, or the text of its error.
        derived: CEL expression of a derived attribute -> its value for the device.
        values_to_admit: attribute name -> its values as constraints compare them, if there are any.
        consumptions: `Request.capacity_kind` -> what such requests take of the device.
    """

    cel: CelDevice | None = None
    outcomes: dict[str, bool | str] = field(default_factory=dict)
    derived: dict[str, Attribute] = field(default_factory=dict)
    values_to_admit: dict[str, frozenset[Key]] = field(default_factory=dict)
    consumptions: dict[int, Consumption | None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class PoolDevice:
    """A device in its pool. Compared by identity.

    Attributes:
        id: its name in the cluster.
        device: its content.
        slice: where it is published.
        use: how far allocated claims have it.
        draws: what it consumes of its pool's counters, in units of 1e-9.
        withheld: whether it has binding conditions while their feature is off.
        shareable: whether several claims can have a share of it.
        of_node: whether its suitability depends on the node.
        special: whether results may say more of it than its name and the node's.
        convertible: whether each of its attributes is a value for CEL, so that an expression
            which uses none of them has a result.
        plain: whether every request that selects it and names no capacity gets it, if it is free
            and no constraint is in the way.
        suitability: `Request.kind` -> what `Matcher.rate_device` has answered.
        facts: what has been computed about it; None for most devices, which are never asked about.
    """

    id: DeviceId
    device: Device
    slice: ResourceSlice
    use: DeviceUse
    draws: tuple[tuple[CounterKey, int], ...]
    withheld: bool
    shareable: bool
    of_node: bool
    special: bool
    convertible: bool
    plain: bool
    suitability: dict[int, int]
    facts: DeviceFacts | None = field(default=None, init=False)

    def get_facts(self) -> DeviceFacts:
        """Return its `facts`, made where they are asked for the first time."""
        if self.facts is None:
            self.facts = DeviceFacts()
        return self.facts


class Pool:
    """One pool as one node sees it. Compared by identity.

    All counters of a pool are added and compared at once: they are kept side by side in one whole
    number, where each has a bit that is set as long as there is no less than nothing of it.

    Attributes:
        devices: those of the slices that target the node, by slice name, then in list order.
        other_devices: those of slices that do not target the node; they only consume counters.
        counters: counter set -> counter -> total, in units of 1e-9.
        not_overdrawn: the bits that are set where no counter is less than nothing.
        incomplete: whether it is being published at the moment, so that nobody gets all devices.
        usable: whether devices of it may be allocated at all.
        invalid_reason: why the pool cannot be used, or an empty string.
        use: how far its devices are in use.
        has_binding_conditions: whether a device has some: the pool sorts after those whose
            devices are ready at once (KEP-5007).
        of_node: whether it depends on the node which devices can be used.
        matching: `Request.selection_kind` -> the devices that allocationMode All means.
    """

    def __init__(
        self,
        pool_id: PoolId,
        use: PoolUse,
        devices: tuple[PoolDevice, ...] = (),
        other_devices: tuple[PoolDevice, ...] = (),
        counters: Mapping[str, Mapping[str, int]] | None = None,
        *,
        incomplete: bool = False,
        invalid_reason: str = "",
    ) -> None:
        self.id = pool_id
        self.use = use
        self.devices = devices
        self.other_devices = other_devices
        self.counters = counters or {}
        self.incomplete = incomplete
        self.invalid_reason = invalid_reason
        self.usable = not incomplete and not invalid_reason
        self.has_binding_conditions = any(
            entry.device.binding_conditions is not None for entry in devices
        )
        self.of_node = any(entry.slice.per_device_node_selection for entry in devices)
        self.matching: dict[int, tuple[PoolDevice, ...]] = {}
        keys = [(name, counter) for name, totals in self.counters.items() for counter in totals]
        amounts = (abs(total) for totals in self.counters.values() for total in totals.values())
        # A quantity such as 1e30 is valid and needs more.
        self._width = max(_BYTES, max(amounts, default=0).bit_length() // 8 + 1 + _ROOM)
        self._most = 1 << 8 * (self._width - _ROOM)
        self._places = {key: number * self._width for number, key in enumerate(keys)}
        highest = bytes(self._width - 1) + b"\x80"
        self.not_overdrawn = int.from_bytes(highest * len(keys), "little")
        self._drawn: dict[PoolDevice, int] = {}
        self._baseline = 0
        self._baseline_version = -1
        self._by_name: dict[str, list[PoolDevice]] | None = None

    def pack_draws(self, entry: PoolDevice) -> int:
        """Return what a device of the pool consumes of its counters, all in one number."""
        packed = self._drawn.get(entry)
        if packed is None:
            packed = self._drawn[entry] = self.pack_amounts(entry.draws)
        return packed

    def pack_amounts(self, amounts: Iterable[tuple[CounterKey, int]]) -> int:
        """Return amounts of counters as one number; several amounts of a counter are added up.

        An amount beyond every total of the pool is cut to one that is still beyond them.
        """
        data = bytearray(self._width * len(self._places))
        overlapping = 0
        for key, amount in amounts:
            amount = max(-self._most, min(amount, self._most))
            offset = self._places[key]
            end = offset + self._width
            if amount < 0 or any(data[offset:end]):
                overlapping += amount << 8 * offset
            else:
                data[offset:end] = amount.to_bytes(self._width, "little")
        return int.from_bytes(data, "little") + overlapping

    def pack_remainder(self) -> int:
        """Return what allocated claims leave of the counters, all in one number.

        Allocated devices are charged once, whether one claim has them or many share them; a device
        that is allocated but not published any more is not charged.
        """
        if self._baseline_version != self.use.version:
            if self._by_name is None:
                everything = (*self.devices, *self.other_devices)
                self._by_name = {}
                for entry in everything:
                    self._by_name.setdefault(entry.id.device, []).append(entry)
            remainder = self.not_overdrawn + self.pack_amounts(
                ((counter_set, name), total)
                for counter_set, totals in self.counters.items()
                for name, total in totals.items()
            )
            for name in self.use.used:
                for entry in self._by_name.get(name, ()):
                    remainder -= self.pack_draws(entry)
            self._baseline = remainder
            self._baseline_version = self.use.version
        return self._baseline
