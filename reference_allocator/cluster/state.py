"""The devices, shares and capacity of the cluster that allocated claims have.

Each device has one `DeviceUse`, to which all that look at the device hold on, so that an event
about a claim changes what it names and nothing else, and a search asks without looking anything up.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from reference_allocator.api import AllocatedDevice, PoolId
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules
from reference_allocator.rules.capacity import complete_name


@dataclass(slots=True, eq=False)
class DeviceUse:
    """The use of one device by allocated claims.

    Attributes:
        held: how many claims have the device for themselves.
        shares: how many shares of it are in use.
        capacity: capacity name -> amount in use, in units of 1e-9.
    """

    held: int = 0
    shares: int = 0
    capacity: dict[str, int] = field(default_factory=dict)

    @property
    def used(self) -> bool:
        """Whether a claim has the device or a share of it."""
        return bool(self.held or self.shares)


@dataclass(slots=True, eq=False)
class PoolUse:
    """The use of one pool's devices by allocated claims.

    Attributes:
        devices: device name -> its use; names that nobody publishes can be among them.
        used: the entries of `devices` that are in use.
        version: grows with every change.
    """

    devices: dict[str, DeviceUse] = field(default_factory=dict)
    used: dict[str, DeviceUse] = field(default_factory=dict)
    version: int = 0

    def device_use(self, name: str) -> DeviceUse:
        """Return the use of a device of the pool, the same object each time."""
        use = self.devices.get(name)
        if use is None:
            use = self.devices[name] = DeviceUse()
        return use


class AllocatedState:
    """The devices and capacity in use by allocated claims."""

    def __init__(self, features: Features, rules: MinorRules) -> None:
        self._shares = features.consumable_capacity
        self._complete_names = rules.reads_inner_types
        self._pools: dict[PoolId, PoolUse] = {}

    def pool_use(self, pool_id: PoolId) -> PoolUse:
        """Return the use of a pool, the same object until `forget` finds nothing in it."""
        use = self._pools.get(pool_id)
        if use is None:
            use = self._pools[pool_id] = PoolUse()
        return use

    def add(self, results: Iterable[AllocatedDevice]) -> None:
        """Count the devices of an allocation in.

        Devices allocated with admin access do not count as in use. A result with a shareID is a
        share where ConsumableCapacity is on, else it takes the device
        (foreachAllocatedDevice in the scheduler's allocateddevices.go).
        """
        for result in results:
            self._count_device(result, 1)

    def remove(self, results: Iterable[AllocatedDevice]) -> None:
        """Count the devices of an allocation out, after `add` has counted them in."""
        for result in results:
            self._count_device(result, -1)

    def forget(self, pool_id: PoolId, published: Container[str]) -> None:
        """Let go of the devices of a pool that are neither published nor in use."""
        pool = self._pools.get(pool_id)
        if pool is None:
            return
        for name in [name for name, use in pool.devices.items() if not use.used]:
            if name not in published:
                del pool.devices[name]
        if not pool.devices:
            del self._pools[pool_id]

    def _count_device(self, result: AllocatedDevice, sign: int) -> None:
        if result.admin_access:
            return
        pool = self.pool_use(PoolId(result.id.driver, result.id.pool))
        use = pool.device_use(result.id.device)
        if not self._shares or result.share_id is None:
            use.held += sign
        else:
            use.shares += sign
            for spelling, amount in result.consumed_capacity.items():
                name = (
                    complete_name(spelling, result.id.driver) if self._complete_names else spelling
                )
                in_use = use.capacity.get(name, 0) + sign * amount.nanos
                if in_use or sign > 0:
                    use.capacity[name] = in_use
                else:  # It may be gone already: others may have consumed nothing of it.
                    use.capacity.pop(name, None)
        if use.used:
            pool.used[result.id.device] = use
        else:
            pool.used.pop(result.id.device, None)
        pool.version += 1
