"""The pools of devices that one node can use, gathered from ResourceSlices.

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
from reference_allocator.rules.capacity import is_taken_whole
from reference_allocator.rules.nodeselector import node_matches


class PoolBuilder:
    """A maker of pools from slices; a device is one object in all its pools. Not thread-safe."""

    def __init__(self, features: Features, state: AllocatedState, rules: MinorRules) -> None:
        self._features = features
        self._rules = rules
        self._state = state
        self._entries: dict[ResourceSlice, tuple[PoolDevice, ...]] = {}
        self._usable: dict[ResourceSlice, bool] = {}

    def forget(self, item: ResourceSlice) -> None:
        """Let go of the devices of a slice that is gone."""
        self._entries.pop(item, None)
        self._usable.pop(item, None)

    def replace_slice(self, old: ResourceSlice, new: ResourceSlice) -> None:
        """Let go of the devices of a slice, but keep the facts about those that are unchanged."""
        entries = self._entries.get(old, ())
        self.forget(old)
        if not entries or old.driver != new.driver:
            return
        old_entries = {entry.id.device: entry for entry in entries}
        for entry in self._entries_of(new):
            old_entry = old_entries.get(entry.id.device)
            if old_entry is not None and old_entry.device.raw == entry.device.raw:
                entry.facts = old_entry.facts

    def is_usable(self, item: ResourceSlice) -> bool:
        """Return whether the features allow to look at the slice at all."""
        usable = self._usable.get(item)
        if usable is None:
            partitions = item.per_device_node_selection is not None or item.shared_counters
            usable = self._usable[item] = (
                self._features.partitionable_devices or not partitions
            ) and (self._features.compatibility_groups or not item.uses_compatibility_groups)
        return usable

    def build_pool(
        self, relevant: Sequence[ResourceSlice], all_slices: Iterable[ResourceSlice]
    ) -> Pool | None:
        """Return the pool that a node sees, or None where a newer generation is elsewhere.

        Args:
            relevant: the slices that target the node, all of one generation.
            all_slices: all slices of the pool, whichever nodes they target.
        """
        first = relevant[0]
        not_targeting: list[ResourceSlice] = []
        if len(relevant) != first.resource_slice_count:
            if self._rules.uses_incomplete_pools:
                pool = self._assemble_pool(
                    sorted(relevant, key=lambda item: item.name), not_targeting
                )
                pool.incomplete = True
                return pool
            # Slices of the pool may be missing here because they are for other nodes only.
            all_slices = list(all_slices)
            if any(item.generation > first.generation for item in all_slices):
                return None
            current = [
                item
                for item in all_slices
                if item.generation == first.generation
                and (self._features.compatibility_groups or not item.uses_compatibility_groups)
            ]
            if len(current) != first.resource_slice_count:
                return self._unusable_pool(first, incomplete=True)
            if len(relevant) < len(current):
                names = {item.name for item in relevant}
                not_targeting = [item for item in current if item.name not in names]
        return self._assemble_pool(sorted(relevant, key=lambda item: item.name), not_targeting)

    def _unusable_pool(
        self, first: ResourceSlice, *, incomplete: bool = False, invalid: str = ""
    ) -> Pool:
        use = self._state.pool_use(first.pool_id)
        return Pool(first.pool_id, use, incomplete=incomplete, invalid_reason=invalid)

    def _assemble_pool(
        self, targeting: list[ResourceSlice], not_targeting: list[ResourceSlice]
    ) -> Pool:
        pool_id = targeting[0].pool_id
        with_counters = self._features.partitionable_devices
        devices = self._devices_of(targeting)
        names: set[str] = set()
        for entry in devices:
            name = entry.device.name
            if name in names:
                return self._unusable_pool(targeting[0], invalid=f"duplicate device name {name}")
            names.add(name)
        use = self._state.pool_use(pool_id)
        if not with_counters:
            return Pool(pool_id, use, devices)
        counters: dict[str, Mapping[str, int]] = {}
        for counter_set in (
            item
            for published_slice in (*targeting, *not_targeting)
            for item in published_slice.shared_counters
        ):
            if counter_set.name in counters:
                reason = f"duplicate counter set name {counter_set.name}"
                return self._unusable_pool(targeting[0], invalid=reason)
            counters[counter_set.name] = {
                name: total.nanos for name, total in counter_set.counters.items()
            }
        other_devices = self._devices_of(not_targeting)
        for entry in (*devices, *other_devices):
            reason = find_unknown_counter(entry.device, counters)
            if reason:
                return self._unusable_pool(targeting[0], invalid=reason)
        return Pool(pool_id, use, devices, other_devices, counters)

    def _devices_of(self, slices: Iterable[ResourceSlice]) -> tuple[PoolDevice, ...]:
        entries: list[PoolDevice] = []
        for item in slices:
            if self._features.partitionable_devices and item.shared_counters:
                continue  # A slice has either devices or counters.
            entries.extend(self._entries_of(item))
        return tuple(entries)

    def _entries_of(self, item: ResourceSlice) -> tuple[PoolDevice, ...]:
        entries = self._entries.get(item)
        if entries is None:
            pool = self._state.pool_use(item.pool_id)
            entries = tuple([self._make_entry(item, device, pool) for device in item.devices])
            self._entries[item] = entries
        return entries

    def _make_entry(self, item: ResourceSlice, device: Device, pool: PoolUse) -> PoolDevice:
        features = self._features
        withheld = bool(device.binding_conditions) and not features.device_binding_and_status
        shareable = features.consumable_capacity and bool(device.allow_multiple_allocations)
        of_node = bool(item.per_device_node_selection or item.skip_node_operations)
        return PoolDevice(
            DeviceId(item.driver, item.pool, device.name),
            device,
            item,
            pool.device_use(device.name),
            tuple(list_draws(device))
            if device.consumes_counters and features.partitionable_devices
            else (),
            withheld,
            shareable,
            of_node,
            bool(
                item.node_name is None
                or item.per_device_node_selection
                or device.binding_conditions
                or device.binding_failure_conditions
                or item.skip_node_operations
            ),
            _convertible(device),
            not (device.taints or device.consumes_counters or shareable or of_node)
            and is_taken_whole(device),
            {},
        )


def _convertible(device: Device) -> bool:
    for attribute in device.attributes.values():  # noqa: SIM110 - half the time of `all`
        if not attribute.always_converts:
            return False
    return True


def list_draws(device: Device) -> Iterator[tuple[CounterKey, int]]:
    """Yield what the device consumes of counters, in units of 1e-9."""
    for item in device.consumes_counters:
        for name, amount in item.counters.items():
            yield (item.counter_set, name), amount.nanos


def targets_node(item: ResourceSlice, node: Node) -> bool:
    """Return whether a slice, or one of its devices, is for a node.

    Raises AllocationError: a node selector does not parse.
    """
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


def keep_newest(newest: list[ResourceSlice], item: ResourceSlice) -> None:
    """Add a slice to others of its pool, unless they are newer; older ones go."""
    if newest and item.generation < newest[0].generation:
        return
    if newest and item.generation > newest[0].generation:
        newest.clear()
    newest.append(item)


def find_unknown_counter(device: Device, counters: Mapping[str, Mapping[str, object]]) -> str:
    """Return which counter of a device its pool does not have; empty if it has all.

    ``counters``: counter set -> counter -> total.
    """
    for consumption in device.consumes_counters:
        counter_set = counters.get(consumption.counter_set)
        if counter_set is None:
            return f"counter set {consumption.counter_set} not found"
        for name in consumption.counters:
            if name not in counter_set:
                return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""
