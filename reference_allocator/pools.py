"""From ResourceSlices to the pools of devices that one node can use, in the order of the search.

A driver replaces its slices one by one, so a pool has generations and can be incomplete; slices of
other nodes belong to the same pool and matter for its counters. Source of the rules: GatherPools in
structured/internal/experimental/pools_experimental.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reference_allocator.api import Device, DeviceId, Node, PoolId, ResourceSlice
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.nodeselector import node_matches


@dataclass(frozen=True, slots=True, eq=False)
class PoolDevice:
    """A device in its pool. Compared by identity."""

    id: DeviceId
    device: Device
    slice: ResourceSlice


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """One pool as one node sees it.

    Attributes:
        devices: those of the slices that target the node, by slice name, then in list order.
        other_devices: those of slices that do not target the node; they only consume counters.
        counters: counter set -> counter -> total, in units of 1e-9.
        incomplete: a newer state of the pool is being published; nothing may be allocated.
        invalid_reason: why the pool cannot be used, or an empty string.
    """

    id: PoolId
    devices: tuple[PoolDevice, ...] = ()
    other_devices: tuple[PoolDevice, ...] = ()
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    incomplete: bool = False
    invalid_reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether devices of the pool can be allocated."""
        return not self.incomplete and not self.invalid_reason

    @property
    def has_binding_conditions(self) -> bool:
        """Whether the pool sorts after those whose devices are ready at once (KEP-5007)."""
        return any(entry.device.binding_conditions is not None for entry in self.devices)


class SliceIndex:
    """The slices of a cluster, arranged for looking up one node's pools.

    Pools that are the same for several nodes are built once. Not thread-safe.
    """

    def __init__(self, slices: Sequence[ResourceSlice], features: Features) -> None:
        self._features = features
        self._shared: list[ResourceSlice] = []
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._of_pool: dict[PoolId, list[ResourceSlice]] = {}
        self._built: dict[tuple[ResourceSlice, ...], Pool | None] = {}
        self._entries: dict[ResourceSlice, tuple[PoolDevice, ...]] = {}
        for item in slices:
            self._of_pool.setdefault(item.pool_id, []).append(item)
            if item.node_name:
                self._of_node.setdefault(item.node_name, []).append(item)
            else:
                self._shared.append(item)

    def pools(self, node: Node) -> list[Pool]:
        """The pools that the node can use, in the order in which devices are tried.

        Sorted by driver and pool name; those with binding conditions come last.

        Raises:
            AllocationError: a node selector of a slice or device does not parse.
        """
        relevant: dict[PoolId, list[ResourceSlice]] = {}
        for item in (*self._of_node.get(node.name, ()), *self._shared):
            if self._usable(item) and _targets(item, node):
                _keep_newest(relevant.setdefault(item.pool_id, []), item)
        built = [self._pool(tuple(relevant[pool_id])) for pool_id in sorted(relevant)]
        present = [pool for pool in built if pool is not None]
        return sorted(present, key=lambda pool: pool.has_binding_conditions)

    def _usable(self, item: ResourceSlice) -> bool:
        if not self._features.partitionable_devices and (
            item.per_device_node_selection is not None or item.shared_counters
        ):
            return False
        return self._features.compatibility_groups or not item.uses_compatibility_groups

    def _pool(self, relevant: tuple[ResourceSlice, ...]) -> Pool | None:
        if relevant not in self._built:
            self._built[relevant] = self._build(relevant)
        return self._built[relevant]

    def _build(self, relevant: tuple[ResourceSlice, ...]) -> Pool | None:
        first = relevant[0]
        others: list[ResourceSlice] = []
        if len(relevant) != first.resource_slice_count:
            # Slices of the pool may be missing here because they are for other nodes only.
            everywhere = self._of_pool[first.pool_id]
            if any(item.generation > first.generation for item in everywhere):
                return None
            current = [
                item
                for item in everywhere
                if item.generation == first.generation
                and (self._features.compatibility_groups or not item.uses_compatibility_groups)
            ]
            if len(current) != first.resource_slice_count:
                return Pool(first.pool_id, incomplete=True)
            if len(relevant) < len(current):
                names = {item.name for item in relevant}
                others = [item for item in current if item.name not in names]
        return self._assemble(sorted(relevant, key=lambda item: item.name), others)

    def _assemble(self, targeting: list[ResourceSlice], others: list[ResourceSlice]) -> Pool:
        pool_id = targeting[0].pool_id
        with_counters = self._features.partitionable_devices
        devices = self._devices(targeting)
        names: set[str] = set()
        for entry in devices:
            if entry.device.name in names:
                return Pool(pool_id, invalid_reason=f"duplicate device name {entry.device.name}")
            names.add(entry.device.name)
        if not with_counters:
            return Pool(pool_id, devices)
        counters: dict[str, Mapping[str, int]] = {}
        for counter_set in (
            item for each in (*targeting, *others) for item in each.shared_counters
        ):
            if counter_set.name in counters:
                reason = f"duplicate counter set name {counter_set.name}"
                return Pool(pool_id, invalid_reason=reason)
            counters[counter_set.name] = {
                name: total.nanos for name, total in counter_set.counters.items()
            }
        other_devices = self._devices(others)
        for entry in (*devices, *other_devices):
            reason = _unknown_counter(entry.device, counters)
            if reason:
                return Pool(pool_id, invalid_reason=reason)
        return Pool(pool_id, devices, other_devices, counters)

    def _devices(self, slices: Iterable[ResourceSlice]) -> tuple[PoolDevice, ...]:
        found: list[PoolDevice] = []
        for item in slices:
            if self._features.partitionable_devices and item.shared_counters:
                continue  # A slice has either devices or counters.
            if item not in self._entries:
                self._entries[item] = tuple(
                    PoolDevice(DeviceId(item.driver, item.pool, device.name), device, item)
                    for device in item.devices
                )
            found.extend(self._entries[item])
        return tuple(found)


def _targets(item: ResourceSlice, node: Node) -> bool:
    """Whether the slice has devices for the node."""
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


def _keep_newest(kept: list[ResourceSlice], item: ResourceSlice) -> None:
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
