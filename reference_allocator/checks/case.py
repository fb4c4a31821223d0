"""One finished allocation, with all that the rules about it refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reference_allocator import api
from reference_allocator.api.reading import InputError
from reference_allocator.cel import CelFeatures
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules
from reference_allocator.rules.nodeselector import node_matches


@dataclass(frozen=True)
class Violation:
    """A rule that an allocation breaks.

    Attributes:
        rule: the name of the rule, for example "selector"
            (see `reference_allocator.checks.checker`).
        claim: `namespace/name` of the claim, or "".
        request: the request (`request` or `request/subrequest`), or "".
        device: `driver/pool/device`, or "".
        message: what is wrong, in a sentence for people.
    """

    rule: str
    claim: str = ""
    request: str = ""
    device: str = ""
    message: str = ""

    def __str__(self) -> str:
        where = " ".join(
            f"{kind} {name}"
            for kind, name in (
                ("claim", self.claim),
                ("request", self.request),
                ("device", self.device),
            )
            if name
        )
        return f"{self.rule}: {where}: {self.message}" if where else f"{self.rule}: {self.message}"


@dataclass(frozen=True, eq=False)
class Published:
    """A device as its driver publishes it, with the slice that it is in."""

    device: api.Device
    slice: api.ResourceSlice

    @cached_property
    def id(self) -> api.DeviceId:
        return api.DeviceId(self.slice.driver, self.slice.pool, self.device.name)


@dataclass(frozen=True, eq=False)
class DeviceResult:
    """One device of the allocation under check (v1.DeviceRequestAllocationResult).

    Attributes:
        claim: the claim that gets the device.
        claim_index: the index of the claim in the allocation.
        number: the index of the result in `devices.results`.
        result: the result as it was read.
        raw: the result as JSON.
        spec: the request or subrequest that it names, or None where there is none.
        published: the published device, or None where the node may not use it.
    """

    claim: api.ResourceClaim
    claim_index: int
    number: int
    result: api.AllocatedDevice
    raw: Mapping[str, Any]
    spec: api.RequestSpec | None
    published: Published | None

    def make_violation(self, rule: str, message: str) -> Violation:
        """Return a violation of a rule by this device."""
        return Violation(rule, self.claim.ref, self.result.request, str(self.result.id), message)


@dataclass(frozen=True, eq=False)
class View:
    """One pool as the node sees it.

    Attributes:
        problem: why nothing may be allocated from it, or "".
        rule: the rule that forbids it, or that forbids allocating all devices of it, or "".
        devices: name -> devices of that name that the node may use.
        devices_of_all_nodes: all devices of the generation in use, also those of other nodes.
        slices: all slices of that generation.
    """

    id: api.PoolId
    problem: str = ""
    rule: str = ""
    devices: Mapping[str, Sequence[Published]] = field(default_factory=dict)
    devices_of_all_nodes: Sequence[Published] = ()
    slices: Sequence[api.ResourceSlice] = ()


SelectorProblems = dict[tuple[str, str, int], str]
"""Expression, driver and identity of a v1 Device -> what is wrong with the selector for it; empty
where it is true."""


@dataclass(frozen=True, eq=False)
class Case:
    """All that the rules look at: the allocation, its claims and the cluster before it."""

    features: Features
    rules: MinorRules
    environment: CelFeatures
    """The CEL environment of selectors."""
    node: api.Node
    slices: Sequence[api.ResourceSlice]
    classes: Mapping[str, api.DeviceClass]
    claims: Sequence[api.ResourceClaim]
    allocations: Sequence[Mapping[str, Any]]
    other_claims: Sequence[api.ResourceClaim]
    """The other claims of the cluster that are allocated."""
    own_allocations: frozenset[int] = frozenset()
    """Indices of the claims whose allocation is the one that they have."""
    selector_problems: SelectorProblems = field(default_factory=dict)

    @cached_property
    def views(self) -> Mapping[api.PoolId, View]:
        """The pools as the node sees them: id -> view, for pools that have slices for the node."""
        slices_of_pool: dict[api.PoolId, list[api.ResourceSlice]] = {}
        for item in self.slices:
            slices_of_pool.setdefault(item.pool_id, []).append(item)
        views = {pool: self._make_view(pool, slices) for pool, slices in slices_of_pool.items()}
        return {pool: view for pool, view in views.items() if view is not None}

    @cached_property
    def device_results(self) -> Sequence[DeviceResult]:
        """All devices of the allocation, claim by claim."""
        return [
            item
            for index, (claim, allocation) in enumerate(
                zip(self.claims, self.allocations, strict=False)
            )
            for item in self._read_results(index, claim, allocation)
        ]

    @cached_property
    def held(self) -> Mapping[api.DeviceId, Sequence[api.AllocatedDevice]]:
        """The devices of other claims: id -> results with it or a share of it; no admin access."""
        held: dict[api.DeviceId, list[api.AllocatedDevice]] = {}
        for claim in self.other_claims:
            for result in claim.results or ():
                if not result.admin_access:
                    held.setdefault(result.id, []).append(result)
        return held

    def is_share(self, result: api.AllocatedDevice) -> bool:
        """Return whether a result is one share of a device that others may have shares of, too."""
        return self.features.consumable_capacity and result.share_id is not None

    def may_be_shared(self, published: Published) -> bool:
        """Return whether shares of the device are allocated, rather than the device."""
        return self.features.consumable_capacity and bool(
            published.device.allow_multiple_allocations
        )

    def results_of_claim(self, index: int) -> list[DeviceResult]:
        """Return the devices of one claim in the order of the result."""
        return [item for item in self.device_results if item.claim_index == index]

    def _read_results(
        self, index: int, claim: api.ResourceClaim, allocation: Mapping[str, Any]
    ) -> Iterator[DeviceResult]:
        specs = dict(named_requests(claim.requests))
        devices = allocation.get("devices") or {}
        raw_results = devices.get("results") or ()
        results = claim.results if index in self.own_allocations else None
        if results is None:
            results = tuple(map(api.AllocatedDevice.from_dict, raw_results))
        for number, (raw, result) in enumerate(zip(raw_results, results, strict=True)):
            view = self.views.get(api.PoolId(result.id.driver, result.id.pool))
            published = None
            if view is not None and not view.problem:
                same_name = view.devices.get(result.id.device, ())
                published = same_name[0] if same_name else None
            spec = specs.get(result.request)
            yield DeviceResult(claim, index, number, result, raw, spec, published)

    def _is_ignored(self, item: api.ResourceSlice) -> bool:
        if not self.features.partitionable_devices and (
            item.per_device_node_selection is not None or item.shared_counters
        ):
            return True
        return item.uses_compatibility_groups and not self.features.compatibility_groups

    def _is_for_node(self, item: api.ResourceSlice) -> bool:
        if item.per_device_node_selection and not (
            item.node_name or item.all_nodes or item.node_selector
        ):
            return any(self.can_use(item, device) for device in item.devices)
        return self._node_matches(item, item)

    def can_use(self, item: api.ResourceSlice, device: api.Device) -> bool:
        """Return whether node selection lets this node use the device, if its slice is for it."""
        if not item.per_device_node_selection:
            return True
        return self._node_matches(item, device)

    def _node_matches(
        self, item: api.ResourceSlice, placed: api.ResourceSlice | api.Device
    ) -> bool:
        """Return whether the node is one of those that a slice, or a device of it, is for."""
        try:
            return node_matches(self.node, placed.node_name, placed.all_nodes, placed.node_selector)
        except AllocationError as error:
            path: list[str | int] = ["slices", self.slices.index(item), "spec"]
            if isinstance(placed, api.Device):
                path += ["devices", item.devices.index(placed)]
            raise InputError(str(error), *path, "nodeSelector") from None

    def _make_view(self, pool: api.PoolId, slices: Sequence[api.ResourceSlice]) -> View | None:
        for_node = [
            item for item in slices if not self._is_ignored(item) and self._is_for_node(item)
        ]
        if not for_node:
            return None
        generation = max(item.generation for item in for_node)
        current = [item for item in for_node if item.generation == generation]
        # Slices that disagree about their number: that of the first one counts, and slices of
        # one node come first.
        slice_count = min(current, key=lambda item: not item.node_name).resource_slice_count
        everywhere, rule = current, ""
        if len(current) != slice_count and self.rules.uses_incomplete_pools:
            rule = "pool-incomplete"
        elif len(current) != slice_count:
            if any(item.generation > generation for item in slices):
                return View(pool, f"generation {generation} has been replaced", "pool-generation")
            everywhere = [
                item
                for item in slices
                if item.generation == generation
                and (self.features.compatibility_groups or not item.uses_compatibility_groups)
            ]
            if len(everywhere) != slice_count:
                problem = f"{len(everywhere)} of {slice_count} slices of the pool are published"
                return View(pool, problem, "pool-incomplete")
        devices: dict[str, list[Published]] = {}
        for published in _list_published(current):
            devices.setdefault(published.device.name, []).append(published)
        view = View(pool, "", rule, devices, list(_list_published(everywhere)), everywhere)
        problem = _find_invalid(view, self.features)
        return View(pool, problem, "pool-invalid") if problem else view


def _list_published(slices: Iterable[api.ResourceSlice]) -> Iterator[Published]:
    for item in slices:
        for device in item.devices:
            yield Published(device, item)


def _find_invalid(view: View, features: Features) -> str:
    for name, same_name in view.devices.items():
        if len(same_name) > 1:
            return f"device name {name} is not unique"
    if not features.partitionable_devices:
        return ""
    names = [item.name for pool_slice in view.slices for item in pool_slice.shared_counters]
    if len(set(names)) != len(names):
        return "a counter set is published twice"
    known_counters = {
        (item.name, counter)
        for pool_slice in view.slices
        for item in pool_slice.shared_counters
        for counter in item.counters
    }
    for published in view.devices_of_all_nodes:
        for consumption in published.device.consumes_counters:
            if consumption.counter_set not in names:
                return f"device {published.device.name} consumes an unknown counter set"
            if any(
                (consumption.counter_set, name) not in known_counters
                for name in consumption.counters
            ):
                return f"device {published.device.name} consumes an unknown counter"
    return ""


def named_requests(requests: Iterable[api.DeviceRequest]) -> Iterator[tuple[str, api.RequestSpec]]:
    """Yield the names that results may use, with the request or alternative of each."""
    for request in requests:
        if request.first_available:
            for alternative in request.first_available:
                yield f"{request.name}/{alternative.name}", alternative
        elif request.exactly is not None:
            yield request.name, request.exactly
