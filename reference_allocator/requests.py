"""What the search works on: claims with their requests made plain and their classes looked up."""

from __future__ import annotations

from dataclasses import dataclass, field

from reference_allocator.api import DeviceClass, DeviceId, RequestSpec, ResourceClaim
from reference_allocator.capacity import Consumption
from reference_allocator.constraints import AttributeConstraint
from reference_allocator.pools import PoolDevice

RESULTS_MAX = 32
"""AllocationResultsMaxSize: how many devices one claim can get."""


@dataclass(slots=True, eq=False)
class Request:
    """A request, or one alternative of a request with firstAvailable.

    Attributes:
        spec: the fields of the API.
        parent: the name of the request that the alternative belongs to, or None.
        device_class: the class that it names.
        count: how many devices it needs.
        all_devices: for allocationMode All exactly the devices that it needs, else None.
        selectors: the CEL expressions of the request itself.
        class_selectors: those of its class.
        derived: derived attribute -> CEL expression.
        selected: memo of the search: whether a device passes all that does not depend on what is
            allocated already.
    """

    claim: ResourceClaim
    spec: RequestSpec
    parent: str | None
    device_class: DeviceClass
    selectors: tuple[str, ...]
    class_selectors: tuple[str, ...]
    derived: dict[str, str]
    count: int = 0
    all_devices: tuple[PoolDevice, ...] | None = None
    selected: dict[PoolDevice, bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`request` or `request/subrequest`, as results name it."""
        return f"{self.parent}/{self.spec.name}" if self.parent is not None else self.spec.name

    @property
    def admin_access(self) -> bool:
        """Whether devices in use may be taken (KEP-5018)."""
        return bool(self.spec.admin_access)

    @property
    def context(self) -> str:
        """How errors name it: with the claim, and an alternative without its parent."""
        return f"claim {self.claim.ref}, request {self.spec.name}"


@dataclass(slots=True, eq=False)
class ClaimRequests:
    """One claim to allocate.

    Attributes:
        requests: in order, each with its alternatives; a request without firstAvailable has one.
        prioritized: for each request whether it has firstAvailable.
        constraints: those of the claim, in order.
    """

    claim: ResourceClaim
    requests: list[list[Request]]
    prioritized: list[bool]
    constraints: tuple[AttributeConstraint, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """A device that the search gave to a request.

    Attributes:
        request: who got it.
        entry: the device.
        consumption: for a share of a device what it takes of it, else None.
    """

    request: Request
    entry: PoolDevice
    consumption: Consumption | None

    @property
    def id(self) -> DeviceId:
        """The device."""
        return self.entry.id
