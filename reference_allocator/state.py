"""What is already allocated in the cluster: the devices, the shares and the capacity in use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reference_allocator.api import DeviceId, ResourceClaim
from reference_allocator.features import Features


@dataclass(frozen=True, slots=True)
class AllocatedState:
    """Devices and capacity in use by allocated claims.

    Attributes:
        devices: devices that one claim has for itself.
        shared: devices with at least one share in use.
        capacity: device -> capacity name -> amount in use, in units of 1e-9.
    """

    devices: frozenset[DeviceId] = frozenset()
    shared: frozenset[DeviceId] = frozenset()
    capacity: Mapping[DeviceId, Mapping[str, int]] = field(default_factory=dict)

    def uses(self, device: DeviceId) -> bool:
        """Whether any claim has the device or a share of it: then its counters are charged."""
        return device in self.devices or device in self.shared

    @classmethod
    def of(cls, claims: Iterable[ResourceClaim], features: Features) -> AllocatedState:
        """Gathers the state from `status.allocation` of the claims.

        Devices allocated with admin access do not count as in use. A result with a shareID is a
        share where ConsumableCapacity is on, else it takes the device
        (foreachAllocatedDevice in the scheduler's allocateddevices.go).
        """
        devices: set[DeviceId] = set()
        shared: set[DeviceId] = set()
        capacity: dict[DeviceId, dict[str, int]] = {}
        for claim in claims:
            for result in claim.results or ():
                if result.admin_access:
                    continue
                if not features.consumable_capacity or result.share_id is None:
                    devices.add(result.id)
                    continue
                shared.add(result.id)
                used = capacity.setdefault(result.id, {})
                for name, amount in result.consumed_capacity.items():
                    used[name] = used.get(name, 0) + amount.nanos
        return cls(frozenset(devices), frozenset(shared), capacity)
