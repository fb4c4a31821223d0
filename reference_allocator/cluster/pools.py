"""Pools of devices as the search sees them, with what is known about each device.

They are made of slices by `reference_allocator.cluster.gathering`; what is known about a device
stays with it as long as its content does, since many nodes and decisions ask the same.
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
"""Counter set and counter."""

_BYTES: Final = 16
"""For one counter of a pool, at least: an int64 in units of 1e-9 needs 12."""
_ROOM: Final = 4
"""Bytes beyond the largest amount, so that those of all devices can be added up."""


@dataclass(slots=True, eq=False)
class DeviceFacts:
    """What has been computed about one device, kept as long as its content stays the same.

    Attributes:
        cel: the device as CEL sees it.
        outcomes: CEL expression -> what it says about the device, or the text of its error.
        derived: CEL expression of a derived attribute -> its value for the device.
        compared: attribute name -> its values as constraints compare them.
        consumptions: what requests take of the device; the keys are those of `Request.wish`.
    """

    cel: CelDevice | None = None
    outcomes: dict[str, bool | str] = field(default_factory=dict)
    derived: dict[str, Attribute] = field(default_factory=dict)
    compared: dict[str, frozenset[Key] | None] = field(default_factory=dict)
    consumptions: dict[int, Consumption | None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class PoolDevice:
    """A device in its pool. Compared by identity.

    Attributes:
        id: its name in the cluster.
        device: its content.
        slice: where it is published.
        use: how far allocated claims have it.
        facts: what has been computed about it; made when it is first asked for, since of most
            devices nobody asks.
        draws: what it consumes of its pool's counters, in units of 1e-9.
        withheld: it has binding conditions, and their feature is off.
        shareable: several claims can have a share of it.
        of_node: whether it suits depends on the node.
        special: results may say more of it than its name.
        convertible: each of its attributes is a value for CEL, so that expressions which ask for
            none of them have one.
        suitability: memo of `Matcher`; the keys are those of `Request.kind`.
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
    suitability: dict[int, int]
    facts: DeviceFacts = field(init=False)

    def __getattr__(self, name: str) -> DeviceFacts:
        """Asked for a field without a value, which only `facts` can be."""
        if name != "facts":
            raise AttributeError(name)
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
        incomplete: a newer state of the pool is being published, and nobody gets all devices.
        usable: whether devices of it may be allocated at all.
        invalid_reason: why the pool cannot be used, or an empty string.
        use: how far its devices are in use.
        has_binding_conditions: the pool sorts after those whose devices are ready at once
            (KEP-5007).
        of_node: which devices can be used depends on the node.
        matching: memo of the validation of allocationMode All.
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

    def drawn(self, entry: PoolDevice) -> int:
        """What a device of the pool consumes of its counters, all in one number."""
        found = self._drawn.get(entry)
        if found is None:
            found = self._drawn[entry] = self.together(entry.draws)
        return found

    def together(self, amounts: Iterable[tuple[CounterKey, int]]) -> int:
        """Amounts of counters as one number; what is given twice is added up.

        An amount beyond every total of the pool is cut to one that is still beyond them.
        """
        data = bytearray(self._width * len(self._places))
        more = 0
        for key, amount in amounts:
            amount = max(-self._most, min(amount, self._most))
            place = self._places[key]
            end = place + self._width
            if amount < 0 or any(data[place:end]):
                more += amount << 8 * place
            else:
                data[place:end] = amount.to_bytes(self._width, "little")
        return int.from_bytes(data, "little") + more

    def baseline(self) -> int:
        """What allocated claims leave of the counters, all in one number.

        Allocated devices are charged once, whether one claim has them or many share them; a device
        that is allocated but not published any more is not charged.
        """
        if self._baseline_version != self.use.version:
            if self._by_name is None:
                everything = (*self.devices, *self.other_devices)
                self._by_name = {}
                for entry in everything:
                    self._by_name.setdefault(entry.id.device, []).append(entry)
            left = self.not_overdrawn + self.together(
                ((counter_set, name), total)
                for counter_set, totals in self.counters.items()
                for name, total in totals.items()
            )
            for name in self.use.used:
                for entry in self._by_name.get(name, ()):
                    left -= self.drawn(entry)
            self._baseline = left
            self._baseline_version = self.use.version
        return self._baseline
