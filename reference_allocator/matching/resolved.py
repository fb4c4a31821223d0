"""Claims as the search works on them: requests made plain, classes looked up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from reference_allocator.api import DeviceClass, RequestSpec, ResourceClaim
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.rules.constraints import AttributeConstraint, State


@dataclass(slots=True, eq=False)
class Request:
    """A request, or one alternative of a request with firstAvailable.

    Attributes:
        spec: the fields of the API.
        parent: the name of the request that the alternative belongs to, or None.
        name: `request` or `request/subrequest`, as results name it.
        device_class: the class that it names.
        selectors: the CEL expressions of the request itself.
        class_selectors: the CEL expressions of its class.
        derived: derived attribute -> CEL expression.
        constraints: the claim's constraints that it is under, with their index.
        first_states: the states of all constraints before any device is taken.
        kind: the same number for requests that the same devices suit, apart from constraints.
        capacity_kind: the same number for requests that take the same of a device's capacity.
        selection_kind: the same number for requests with the same selectors and `capacity_kind`.
        admin_access: whether devices in use may be taken (KEP-5018).
        everything: whether the allocation mode is All.
        count: how many devices it needs.
        all_devices: for allocationMode All exactly the devices that it needs, else None.
        special: whether results say more of it than its name.
    """

    claim: ResourceClaim
    spec: RequestSpec
    parent: str | None
    name: str
    device_class: DeviceClass
    selectors: tuple[str, ...]
    class_selectors: tuple[str, ...]
    derived: dict[str, str]
    constraints: tuple[tuple[int, AttributeConstraint], ...]
    first_states: tuple[State, ...]
    kind: int
    capacity_kind: int
    selection_kind: int
    admin_access: bool
    everything: bool
    count: int
    all_devices: tuple[PoolDevice, ...] | None = None
    special: bool = field(init=False)

    def __post_init__(self) -> None:
        self.special = self.admin_access or bool(self.spec.tolerations)

    def on_node(self, devices: tuple[PoolDevice, ...]) -> Request:
        """Return the same request for these devices, which are all that there are on a node."""
        if devices == self.all_devices:
            return self
        return replace(self, count=len(devices), all_devices=devices)

    @property
    def context(self) -> str:
        """Return how errors name it: with the claim, and an alternative without its parent."""
        return f"claim {self.claim.ref}, request {self.spec.name}"


@dataclass(slots=True, eq=False)
class ClaimRequests:
    """One claim to allocate.

    Attributes:
        requests: in order, each with its alternatives; a request without firstAvailable has one.
        prioritized: for each request whether it has firstAvailable.
        constraints: the claim's constraints, in order.
        everything: whether a request has allocationMode All.
        configured: whether the claim or a class of it has configuration.
        first_states: the states of the constraints before any device is taken.
        may_exceed: whether a choice of alternatives asks for more devices than a claim can get.
        pools: the pools whose devices requests with allocationMode All have, if that is known.
    """

    claim: ResourceClaim
    requests: list[list[Request]]
    prioritized: list[bool]
    constraints: tuple[AttributeConstraint, ...]
    everything: bool
    configured: bool
    first_states: tuple[State, ...] = field(init=False)
    may_exceed: bool = field(init=False)
    pools: list[Pool] | None = None

    def __post_init__(self) -> None:
        self.first_states = (None,) * len(self.constraints)
        most = sum(max(option.count for option in options) for options in self.requests)
        self.may_exceed = most > ALLOCATION_RESULTS_MAX
