"""From ResourceSlices to the pools of devices that one node can use.

A driver replaces its slices one by one, so a pool has generations and can be incomplete; slices of
other nodes belong to the same pool and matter for its counters. Source of the rules: GatherPools in
structured/internal/experimental/pools_experimental.go. Which pools a node has, and in which order,
is up to `reference_allocator.cluster.views`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reference_allocator.api import Device, DeviceId, Node, ResourceSlice
from reference_allocator.cluster.pools import CounterKey, Pool, PoolDevice
from reference_allocator.cluster.state import AllocatedState, PoolUse
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules
from reference_allocator.rules.nodeselector import node_matches


class PoolBuilder:
    """Makes pools of slices, each device once however many pools it is in. Not thread-safe."""

    def __init__(self, features: Features, state: AllocatedState, rules: MinorRules) -> None:
        self._features = features
        self._rules = rules
        self._state = state
        self._entries: dict[ResourceSlice, tuple[PoolDevice, ...]] = {}
        self._usable: dict[ResourceSlice, bool] = {}

    def forget(self, item: ResourceSlice) -> None:
        self._entries.pop(item, None)
        self._usable.pop(item, None)

    def replace(self, old: ResourceSlice, new: ResourceSlice) -> None:
        """Lets go of the devices of a slice, apart from what is known about unchanged ones."""
        entries = self._entries.get(old, ())
        self.forget(old)
        if not entries or old.driver != new.driver:
            return
        known = {entry.id.device: entry for entry in entries}
        for entry in self._entries_of(new):
            before = known.get(entry.id.device)
            if before is not None and before.device.raw == entry.device.raw:
                entry.facts = before.facts

    def usable(self, item: ResourceSlice) -> bool:
        """Whether the features allow to look at the slice at all."""
        known = self._usable.get(item)
        if known is None:
            partitions = item.per_device_node_selection is not None or item.shared_counters
            known = self._usable[item] = (
                self._features.partitionable_devices or not partitions
            ) and (self._features.compatibility_groups or not item.uses_compatibility_groups)
        return known

    def build(
        self, relevant: Sequence[ResourceSlice], everywhere: Iterable[ResourceSlice]
    ) -> Pool | None:
        """The pool that a node sees, or None where a newer state of it is elsewhere.

        Args:
            relevant: the slices that target the node, all of one generation.
            everywhere: all slices of the pool.
        """
        first = relevant[0]
        others: list[ResourceSlice] = []
        if len(relevant) != first.resource_slice_count:
            if self._rules.uses_incomplete_pools:
                pool = self._assemble(sorted(relevant, key=lambda item: item.name), others)
                pool.incomplete = True
                return pool
            # Slices of the pool may be missing here because they are for other nodes only.
            everywhere = list(everywhere)
            if any(item.generation > first.generation for item in everywhere):
                return None
            current = [
                item
                for item in everywhere
                if item.generation == first.generation
                and (self._features.compatibility_groups or not item.uses_compatibility_groups)
            ]
            if len(current) != first.resource_slice_count:
                return self._pool(first, incomplete=True)
            if len(relevant) < len(current):
                names = {item.name for item in relevant}
                others = [item for item in current if item.name not in names]
        return self._assemble(sorted(relevant, key=lambda item: item.name), others)

    def _pool(self, first: ResourceSlice, *, incomplete: bool = False, invalid: str = "") -> Pool:
        use = self._state.pool(first.pool_id)
        return Pool(first.pool_id, use, incomplete=incomplete, invalid_reason=invalid)

    def _assemble(self, targeting: list[ResourceSlice], others: list[ResourceSlice]) -> Pool:
        pool_id = targeting[0].pool_id
        with_counters = self._features.partitionable_devices
        devices = self._devices(targeting)
        names: set[str] = set()
        for entry in devices:
            name = entry.device.name
            if name in names:
                return self._pool(targeting[0], invalid=f"duplicate device name {name}")
            names.add(name)
        use = self._state.pool(pool_id)
        if not with_counters:
            return Pool(pool_id, use, devices)
        counters: dict[str, Mapping[str, int]] = {}
        for counter_set in (
            item for each in (*targeting, *others) for item in each.shared_counters
        ):
            if counter_set.name in counters:
                reason = f"duplicate counter set name {counter_set.name}"
                return self._pool(targeting[0], invalid=reason)
            counters[counter_set.name] = {
                name: total.nanos for name, total in counter_set.counters.items()
            }
        other_devices = self._devices(others)
        for entry in (*devices, *other_devices):
            reason = _unknown_counter(entry.device, counters)
            if reason:
                return self._pool(targeting[0], invalid=reason)
        return Pool(pool_id, use, devices, other_devices, counters)

    def _devices(self, slices: Iterable[ResourceSlice]) -> tuple[PoolDevice, ...]:
        found: list[PoolDevice] = []
        for item in slices:
            if self._features.partitionable_devices and item.shared_counters:
                continue  # A slice has either devices or counters.
            found.extend(self._entries_of(item))
        return tuple(found)

    def _entries_of(self, item: ResourceSlice) -> tuple[PoolDevice, ...]:
        entries = self._entries.get(item)
        if entries is None:
            pool = self._state.pool(item.pool_id)
            entries = tuple([self._entry(item, device, pool) for device in item.devices])
            self._entries[item] = entries
        return entries

    def _entry(self, item: ResourceSlice, device: Device, pool: PoolUse) -> PoolDevice:
        features = self._features
        withheld = bool(device.binding_conditions) and not features.device_binding_and_status
        shareable = features.consumable_capacity and bool(device.allow_multiple_allocations)
        return PoolDevice(
            DeviceId(item.driver, item.pool, device.name),
            device,
            item,
            pool.device(device.name),
            tuple(consumption(device))
            if device.consumes_counters and features.partitionable_devices
            else (),
            withheld,
            shareable,
            bool(item.per_device_node_selection or item.skip_node_operations),
            bool(
                device.binding_conditions
                or device.binding_failure_conditions
                or item.skip_node_operations
            ),
            _convertible(device),
            {},
        )


def _convertible(device: Device) -> bool:
    for attribute in device.attributes.values():  # noqa: SIM110 - half the time of `all`
        if not attribute.always_converts:
            return False
    return True


def consumption(device: Device) -> Iterator[tuple[CounterKey, int]]:
    """What the device consumes of counters, in units of 1e-9."""
    for item in device.consumes_counters:
        for name, amount in item.counters.items():
            yield (item.counter_set, name), amount.nanos


def targets(item: ResourceSlice, node: Node) -> bool:
    try:
        if item.node_name or item.all_nodes or item.node_selector is not None:
            return node_matches(node, item.node_name, item.all_nodes, item.node_selector)
    except AllocationError as error:
        raise AllocationError(
            "gather pool information: failed to perform node selection for slice "
            f"{item.name}: {error}"
        ) from None
    if not item.per_device_node_selection:
        return False
    for device in item.devices:
        try:
            if node_matches(node, device.node_name, device.all_nodes, device.node_selector):
                return True
        except AllocationError as error:
            raise AllocationError(
                "gather pool information: failed to perform node selection for device "
                f"{device.name} in slice {item.name}: {error}"
            ) from None
    return False


def keep_newest(kept: list[ResourceSlice], item: ResourceSlice) -> None:
    """Adds a slice to others of its pool, unless there are newer ones; older ones go."""
    if kept and item.generation < kept[0].generation:
        return
    if kept and item.generation > kept[0].generation:
        kept.clear()
    kept.append(item)


def _unknown_counter(device: Device, counters: Mapping[str, Mapping[str, int]]) -> str:
    for consumption in device.consumes_counters:
        counter_set = counters.get(consumption.counter_set)
        if counter_set is None:
            return f"counter set {consumption.counter_set} not found"
        for name in consumption.counters:
            if name not in counter_set:
                return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""
