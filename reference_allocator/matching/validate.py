"""The checks of claims before any device is tried; an error is fatal for the pod.

They run in the order of upstream's Allocate and validateDeviceRequest, claim by claim and request
by request, because the first error is the one that is reported. A claim that has passed is
remembered, since one claim is tried on many nodes; only allocationMode All depends on the node.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from itertools import count
from typing import Final

from reference_allocator import api
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from reference_allocator.cluster.node import NodeView
from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.errors import AllocationError, NodeAllocationError
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules
from reference_allocator.matching.matcher import Matcher
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.rules.constraints import AttributeConstraint

_MAX_CLAIMS: Final = 1024
_MAX_NUMBERS: Final = 16_384
_MAX_MATCHING: Final = 256


class Numbers:
    """Small numbers for values that are expensive to compare: equal values have equal numbers."""

    def __init__(self) -> None:
        self._number_by_value: dict[Hashable, int] = {}
        self._next = count()

    def number_of(self, value: Hashable) -> int:
        """Return the number of a value; a forgotten value gets a new one, never a used one."""
        number = self._number_by_value.get(value)
        if number is None:
            if len(self._number_by_value) >= _MAX_NUMBERS:
                self._number_by_value.clear()
            number = self._number_by_value[value] = next(self._next)
        return number


class Validator:
    """The checks that turn claims into `ClaimRequests`. Not thread-safe."""

    def __init__(self, features: Features, classes: Mapping[str, api.DeviceClass]) -> None:
        self._features = features
        self._classes = classes
        self._numbers = Numbers()
        self._checked_claims: dict[int, ClaimRequests] = {}

    def forget(self) -> None:
        """Let go of all claims, because a class has changed."""
        self._checked_claims.clear()

    def validate_claim(
        self, claim: api.ResourceClaim, matcher: Matcher, view: NodeView
    ) -> ClaimRequests:
        """Check one claim and look up what its requests need.

        Raises:
            AllocationError: the claim cannot be handled; the text is upstream's.
            NodeAllocationError: it cannot be handled on this node.
            SearchTimeoutError: the deadline passed.
        """
        remembered = self._checked_claims.get(id(claim))
        if remembered is not None:  # It holds on to the claim, so no other can have its id.
            return self._recount(remembered, matcher, view) if remembered.everything else remembered
        checked = self._check_claim(claim, matcher, view)
        if len(self._checked_claims) >= _MAX_CLAIMS:
            del self._checked_claims[next(iter(self._checked_claims))]
        self._checked_claims[id(claim)] = checked
        return checked

    def _check_claim(
        self, claim: api.ResourceClaim, matcher: Matcher, view: NodeView
    ) -> ClaimRequests:
        requests: list[list[Request]] = []
        needed = 0
        for request in claim.requests:
            self._check_gates(claim, request)
            alternatives = self._alternatives(claim, request, matcher, view)
            requests.append(alternatives)
            needed += _least_devices(claim, request.name, alternatives, needed)
        constraints = self._constraints(claim, matcher.rules)
        everything = False
        for item in (item for alternatives in requests for item in alternatives):
            everything |= item.everything
            item.constraints = tuple(
                (index, constraint)
                for index, constraint in enumerate(constraints)
                if constraint.applies_to(item.spec.name, item.parent)
            )
            item.first_states = (None,) * len(constraints)
        prioritized = [bool(request.first_available) for request in claim.requests]
        configured = bool(claim.config) or any(
            item.device_class.config for alternatives in requests for item in alternatives
        )
        return ClaimRequests(claim, requests, prioritized, constraints, everything, configured)

    def _recount(
        self, remembered: ClaimRequests, matcher: Matcher, view: NodeView
    ) -> ClaimRequests:
        """Return the same claim with the devices that this node has for allocationMode All."""
        if view.pools == remembered.pools:
            return remembered
        requests: list[list[Request]] = []
        needed = 0
        for request, alternatives_before in zip(
            remembered.claim.requests, remembered.requests, strict=True
        ):
            alternatives = [
                item.on_node(_all_devices(item, matcher, view)) if item.everything else item
                for item in alternatives_before
            ]
            requests.append(alternatives)
            needed += _least_devices(remembered.claim, request.name, alternatives, needed)
        if requests != remembered.requests:
            remembered = replace(remembered, requests=requests)
            self._checked_claims[id(remembered.claim)] = remembered
        of_node = any(pool.of_node for pool in view.pools)
        remembered.pools = None if of_node else view.pools
        return remembered

    def _check_gates(self, claim: api.ResourceClaim, request: api.DeviceRequest) -> None:
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

    def _alternatives(
        self, claim: api.ResourceClaim, request: api.DeviceRequest, matcher: Matcher, view: NodeView
    ) -> list[Request]:
        if request.first_available:
            return [
                self._check_request(claim, alternative, request.name, matcher, view)
                for alternative in request.first_available
            ]
        if request.exactly is None:
            # Upstream has no answer for a request of an unknown kind (it dereferences nil).
            raise AllocationError(
                f"claim {claim.ref}, request {request.name}: missing device class name "
                "(unsupported request type?)"
            )
        return [self._check_request(claim, request.exactly, None, matcher, view)]

    def _check_request(
        self,
        claim: api.ResourceClaim,
        spec: api.RequestSpec,
        parent: str | None,
        matcher: Matcher,
        view: NodeView,
    ) -> Request:
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
        class_selectors = _class_selectors(device_class)
        capacity_kind = self._numbers.number_of(_capacity_key(spec.capacity))
        selection_kind = self._numbers.number_of((class_selectors, tuple(selectors), capacity_kind))
        tolerations = tuple((t.key, t.operator, t.value, t.effect) for t in spec.tolerations)
        request = Request(
            claim=claim,
            spec=spec,
            parent=parent,
            name=spec.name if parent is None else f"{parent}/{spec.name}",
            device_class=device_class,
            selectors=tuple(selectors),
            class_selectors=class_selectors,
            derived={item.name: item.expression for item in spec.derived_attributes},
            constraints=(),
            first_states=(),
            kind=self._numbers.number_of((selection_kind, tolerations)),
            capacity_kind=capacity_kind,
            selection_kind=selection_kind,
            admin_access=bool(spec.admin_access),
            everything=spec.allocation_mode == "All",
            count=spec.count,
        )
        if request.everything:
            return request.on_node(_all_devices(request, matcher, view))
        if spec.allocation_mode != "ExactCount":
            raise AllocationError(
                f"{request.context}: unsupported count mode {spec.allocation_mode}"
            )
        return request

    def _constraints(
        self, claim: api.ResourceClaim, rules: MinorRules
    ) -> tuple[AttributeConstraint, ...]:
        lists = self._features.list_type_attributes
        constraints: list[AttributeConstraint] = []
        for index, item in enumerate(claim.constraints):
            constraint = AttributeConstraint.from_api(item, rules, lists=lists)
            if constraint is None:
                raise AllocationError(
                    f"claim {claim.ref}, constraint #{index}: empty constraint "
                    "(unsupported constraint type?)"
                )
            constraints.append(constraint)
        return tuple(constraints)


def _class_selectors(device_class: api.DeviceClass) -> tuple[str, ...]:
    # Upstream dereferences a class selector of an unknown kind; an empty expression is an error.
    return tuple(selector or "" for selector in device_class.selectors)


def _capacity_key(capacity: api.CapacityRequests | None) -> Hashable:
    """Return all of a capacity request that `rules.capacity.resolve_consumption` depends on."""
    if capacity is None:
        return None
    return tuple(
        (name, amount.text, amount.value, amount.scale, amount.format, amount.decimal)
        for name, amount in sorted(capacity.requests.items())
    )


def _least_devices(
    claim: api.ResourceClaim, name: str, alternatives: list[Request], needed: int
) -> int:
    """Return how many devices a request needs at least.

    Raises:
        AllocationError: they are too many beside the devices that earlier requests need.
    """
    least = alternatives[0].count
    if len(alternatives) > 1:
        least = min(alternative.count for alternative in alternatives)
    if least > ALLOCATION_RESULTS_MAX - needed:
        raise AllocationError(
            f"claim {claim.ref}, request {name}: adding {least} devices exceeds "
            f"the claim limit of {ALLOCATION_RESULTS_MAX}, with {needed} already accounted for"
        )
    return least


def _all_devices(request: Request, matcher: Matcher, view: NodeView) -> tuple[PoolDevice, ...]:
    """Return every device that matches, in use or not: All means all of them or nothing."""
    devices: list[PoolDevice] = []
    for pool in view.pools:
        if pool.incomplete or not pool.usable:
            failure = NodeAllocationError if matcher.rules.fails_all_on_node else AllocationError
            asks = f"{request.context}: asks for all devices, but resource pool {pool.id}"
            if pool.incomplete:
                raise failure(f"{asks} is currently being updated")
            raise failure(f"{asks} is currently invalid")
        matching = _matching_devices(request, pool, matcher)
        if len(view.pools) == 1:
            return matching
        devices.extend(matching)
    return tuple(devices)


def _matching_devices(request: Request, pool: Pool, matcher: Matcher) -> tuple[PoolDevice, ...]:
    matching = pool.matching.get(request.selection_kind)
    if matching is None:
        matching = tuple(
            entry
            for entry in pool.devices
            if matcher.is_selected(request, entry) and matcher.could_fit(request, entry)
        )
        if not pool.of_node:
            if len(pool.matching) >= _MAX_MATCHING:
                pool.matching.clear()
            pool.matching[request.selection_kind] = matching
    return matching
