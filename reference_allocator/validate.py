"""The checks before any device is tried; what they find wrong is fatal for the pod.

They run in the order of upstream's Allocate and validateDeviceRequest, claim by claim and request
by request, because the first error is the one that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reference_allocator.api import DeviceClass, DeviceRequest, RequestSpec, ResourceClaim
from reference_allocator.capacity import CapacityError, fits, resolve
from reference_allocator.constraints import AttributeConstraint
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.pools import Pool, PoolDevice
from reference_allocator.requests import RESULTS_MAX, ClaimRequests, Request

IsSelected = Callable[[Request, PoolDevice], bool]
"""Whether a device passes a request's selectors and node selection; raises on an error."""


class Validator:
    """Turns claims into `ClaimRequests`, or raises AllocationError."""

    def __init__(
        self,
        features: Features,
        classes: Mapping[str, DeviceClass],
        pools: Sequence[Pool],
        is_selected: IsSelected,
    ) -> None:
        self._features = features
        self._classes = classes
        self._pools = pools
        self._is_selected = is_selected

    def claim(self, claim: ResourceClaim) -> ClaimRequests:
        """Checks one claim and looks up what its requests need.

        Raises:
            AllocationError: the claim cannot be handled; the text is upstream's.
        """
        requests: list[list[Request]] = []
        needed = 0
        for request in claim.requests:
            self._check_gates(claim, request)
            alternatives = self._alternatives(claim, request)
            requests.append(alternatives)
            least = min(alternative.count for alternative in alternatives)
            if least > RESULTS_MAX - needed:
                raise AllocationError(
                    f"claim {claim.ref}, request {request.name}: adding {least} devices exceeds "
                    f"the claim limit of {RESULTS_MAX}, with {needed} already accounted for"
                )
            needed += least
        prioritized = [bool(request.first_available) for request in claim.requests]
        return ClaimRequests(claim, requests, prioritized, self._constraints(claim))

    def _check_gates(self, claim: ResourceClaim, request: DeviceRequest) -> None:
        where = f"claim {claim.ref}, request {request.name}"
        if request.first_available and not self._features.prioritized_list:
            raise AllocationError(
                f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        if self._features.consumable_capacity:
            return
        off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
        if request.exactly is not None and request.exactly.capacity is not None:
            raise AllocationError(f"{where}: {off}")
        for alternative in request.first_available:
            if alternative.capacity is not None:
                raise AllocationError(f"claim {claim.ref}, subrequest {alternative.name}: {off}")

    def _alternatives(self, claim: ResourceClaim, request: DeviceRequest) -> list[Request]:
        if request.first_available:
            return [
                self._request(claim, alternative, request.name)
                for alternative in request.first_available
            ]
        if request.exactly is None:
            # Upstream has no answer for a request of an unknown kind (it dereferences nil).
            raise AllocationError(
                f"claim {claim.ref}, request {request.name}: missing device class name "
                "(unsupported request type?)"
            )
        return [self._request(claim, request.exactly, None)]

    def _request(self, claim: ResourceClaim, spec: RequestSpec, parent: str | None) -> Request:
        where = f"claim {claim.ref}, request {spec.name}"
        if spec.derived_attributes and not self._features.derived_attributes:
            raise AllocationError(
                f"{where}: cannot handle request with derived attributes, the feature is disabled"
            )
        selectors: list[str] = []
        for index, selector in enumerate(spec.selectors):
            if selector is None:
                raise AllocationError(
                    f"{where}, selector #{index}: CEL expression empty (unsupported selector type?)"
                )
            selectors.append(selector)
        if spec.admin_access is not None and not self._features.admin_access:
            raise AllocationError(
                f"{where}: admin access is requested, but the feature is disabled"
            )
        if not spec.device_class_name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._classes.get(spec.device_class_name)
        if device_class is None:
            raise AllocationError(
                f"{where}: could not retrieve device class {spec.device_class_name}: "
                f'deviceclass.resource.k8s.io "{spec.device_class_name}" not found'
            )
        request = Request(
            claim=claim,
            spec=spec,
            parent=parent,
            device_class=device_class,
            selectors=tuple(selectors),
            class_selectors=_class_selectors(device_class),
            derived={item.name: item.expression for item in spec.derived_attributes},
        )
        self._count(request)
        return request

    def _count(self, request: Request) -> None:
        mode = request.spec.allocation_mode
        if mode == "ExactCount":
            request.count = request.spec.count
        elif mode == "All":
            request.all_devices = tuple(self._all_devices(request))
            request.count = len(request.all_devices)
        else:
            raise AllocationError(f"{request.context}: unsupported count mode {mode}")

    def _all_devices(self, request: Request) -> list[PoolDevice]:
        """Every device that matches, in use or not: All means all of them or nothing."""
        found: list[PoolDevice] = []
        for pool in self._pools:
            asks = f"{request.context}: asks for all devices, but resource pool {pool.id}"
            if pool.incomplete:
                raise AllocationError(f"{asks} is currently being updated")
            if pool.invalid_reason:
                raise AllocationError(f"{asks} is currently invalid")
            found.extend(
                entry
                for entry in pool.devices
                if self._is_selected(request, entry) and self._could_fit(request, entry)
            )
        return found

    def _could_fit(self, request: Request, entry: PoolDevice) -> bool:
        """Whether the device has enough capacity if nobody else uses it."""
        if not self._features.consumable_capacity:
            return True
        try:
            consumption = resolve(request.spec.capacity, entry.device, self._features)
        except CapacityError as error:
            raise AllocationError(
                f"{request.context}: checking capacity for device {entry.device.name}: {error}"
            ) from None
        return consumption is not None and fits(consumption, entry.device, {}, {})

    def _constraints(self, claim: ResourceClaim) -> tuple[AttributeConstraint, ...]:
        lists = self._features.list_type_attributes
        found: list[AttributeConstraint] = []
        for index, item in enumerate(claim.constraints):
            constraint = AttributeConstraint.of(item, lists=lists)
            if constraint is None:
                raise AllocationError(
                    f"claim {claim.ref}, constraint #{index}: empty constraint "
                    "(unsupported constraint type?)"
                )
            found.append(constraint)
        return tuple(found)


def _class_selectors(device_class: DeviceClass) -> tuple[str, ...]:
    # Upstream dereferences a class selector of an unknown kind; an empty expression is an error.
    return tuple(selector or "" for selector in device_class.selectors)
