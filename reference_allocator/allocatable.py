"""Node-allocatable resources: devices that are, or cost, CPU and memory of their node.

A device can stand for a resource that the node has anyway (`mapping`: a CPU driver's cores), or
cost some of it for each pod and container (`overhead`: host memory for a GPU). What the claims of a
pod come to goes into the pod's status, and is added to what the pod asks of the node. Source:
nodeallocatabledynamicresources.go of the scheduler's dynamicresources plugin, and
component-helpers/resource/helpers.go. Gate: DRANodeAllocatableResources (alpha in 1.37).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reference_allocator.api import DeviceId, Node, ResourceSlice
from reference_allocator.api.claims import AllocatedDevice, read_results
from reference_allocator.api.quantity import Quantity
from reference_allocator.api.reading import (
    expect_object,
    read_child,
    read_entries,
    read_items,
    read_string,
)
from reference_allocator.api.records import read_quantity
from reference_allocator.errors import AllocationError
from reference_allocator.rules.nodeselector import node_matches

Object = Mapping[str, Any]

_NANO: Final = 10**9
_HUGE_PAGES: Final = "hugepages-"
_COUNTED: Final = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class PodClaim:
    """An allocated claim of a pod.

    Attributes:
        reference: the name of the claim in the pod (`spec.resourceClaims[].name`).
        name: the name of the ResourceClaim.
        allocation: its v1 AllocationResult.
    """

    reference: str
    name: str
    allocation: Object


class AllocatableError(ValueError):
    """The share of the node that devices take cannot be computed: the pod cannot be scheduled."""


@dataclass(slots=True)
class _Amounts:
    mapped: dict[str, Quantity] = field(default_factory=dict)
    per_pod: dict[str, Quantity] = field(default_factory=dict)
    per_container: dict[str, Quantity] = field(default_factory=dict)


def claim_statuses(
    pod: Object, claims: Sequence[PodClaim], slices: Iterable[ResourceSlice], node: Node
) -> list[dict[str, Any]]:
    """Sum up each claim of a pod, for `status.nodeAllocatableResourceClaimStatuses`.

    Claims without devices that have to do with the node's resources are left out.
    ``pod``: a v1 Pod; its spec says which containers refer to which claim.
    Returns v1 NodeAllocatableResourceClaimStatus objects, sorted by the name of the claim.

    Raises:
        AllocatableError: a device is gone or not for this node, or the capacity that a mapping
            names has not been consumed.
        InputError: an object has not its form; names the path.
    """
    published = list(slices)
    users = _containers_of_claims(pod)
    statuses: list[dict[str, Any]] = []
    for claim in claims:
        results = read_results(claim.allocation)
        if not any(_find_definitions(item.id, published, node) for item in results):
            continue
        amounts = _Amounts()
        for item in results:
            device = _find_device(item.id, published, node)
            if device is None:
                raise AllocatableError(
                    f"claim {claim.name}, device {item.id.device}, driver {item.id.driver}: "
                    f"not found in pool {item.id.pool} on node {node.name}"
                )
            for name, resource in _read_definitions(device).items():
                _add_resource(amounts, name, resource, item, claim)
        if not (amounts.mapped or amounts.per_pod or amounts.per_container):
            continue
        status: dict[str, Any] = {"resourceClaimName": claim.name}
        if claim.reference in users:
            status["containers"] = users[claim.reference]
        if amounts.mapped:
            status["mapping"] = [
                {"name": name, "quantity": str(amount)}
                for name, amount in sorted(amounts.mapped.items())
            ]
        overhead = list(_list_overhead(amounts))
        if overhead:
            status["overhead"] = overhead
        statuses.append(status)
    return sorted(statuses, key=lambda item: str(item["resourceClaimName"]))


def sum_demand(statuses: Iterable[Object]) -> dict[str, Quantity]:
    """Sum up what the claims of a pod add to its requests: resource -> amount."""
    total: dict[str, Quantity] = {}
    for status in statuses:
        containers = len(status.get("containers") or ())
        for item in status.get("mapping") or ():
            _add_amount(total, item["name"], read_quantity(item["quantity"]))
        for item in status.get("overhead") or ():
            if item.get("perPod") is not None:
                _add_amount(total, item["name"], read_quantity(item["perPod"]))
            if item.get("perContainer") is not None and containers:
                amount = read_quantity(item["perContainer"])
                product = Quantity.from_nanos(amount.nanos * containers, amount.format)
                _add_amount(total, item["name"], product)
    return total


def list_insufficient_resources(
    requests: Mapping[str, Quantity],
    extra: Mapping[str, Quantity],
    allocatable: Mapping[str, Quantity],
    requested: Mapping[str, Quantity],
) -> list[str]:
    """Return the resources of which the node has not enough, as the scheduler words them, sorted.

    Only cpu, memory, ephemeral-storage and huge pages are looked at; others cannot be devices.

    Args:
        requests: what the pod itself asks for: resource -> amount, as in all four.
        extra: what its claims add.
        allocatable: `status.allocatable` of the node.
        requested: what pods on the node have.
    """

    def amount(source: Mapping[str, Quantity], name: str, unit: int) -> int:
        quantity = source.get(name)
        return 0 if quantity is None else -(-quantity.nanos // unit)

    insufficient: list[str] = []
    for name in sorted({*requests, *extra}):
        if name not in _COUNTED and not name.startswith(_HUGE_PAGES):
            continue
        unit = _NANO // 1000 if name == "cpu" else _NANO
        requests_and_extra = dict(requests)
        if name in extra:
            _add_amount(requests_and_extra, name, extra[name])
        needed = amount(requests_and_extra, name, unit)
        available = amount(allocatable, name, unit) - amount(requested, name, unit)
        if needed > available and (needed > 0 or name.startswith(_HUGE_PAGES)):
            insufficient.append(f"Insufficient {name}")
    return insufficient


def is_exclusive(allocation: Object, slices: Iterable[ResourceSlice], node: Node) -> bool:
    """Return whether pods must not share a claim, because a device stands for node resources.

    Raises InputError: the allocation has not its form.
    """
    published = list(slices)
    return any(
        resource.get("mapping") is not None
        for item in read_results(allocation)
        for resource in _find_definitions(item.id, published, node).values()
    )


def _list_overhead(amounts: _Amounts) -> Iterator[dict[str, str]]:
    for name in sorted({*amounts.per_pod, *amounts.per_container}):
        entry = {"name": name}
        if name in amounts.per_pod:
            entry["perPod"] = str(amounts.per_pod[name])
        if name in amounts.per_container:
            entry["perContainer"] = str(amounts.per_container[name])
        yield entry


def _add_resource(
    amounts: _Amounts, name: str, resource: Object, item: AllocatedDevice, claim: PodClaim
) -> None:
    mapped = read_child(resource, "mapping", expect_object)
    if mapped is not None:
        key = read_string(mapped, "capacityKey")
        per_device = read_child(mapped, "deviceMultiplier", read_quantity)
        if key:
            if not item.consumed_capacity:
                raise AllocatableError(
                    f"claim {claim.name}, device {item.id.device}: ConsumedCapacity is nil, but "
                    f"Capacity key '{key}' is set in NodeAllocatableResources for resource {name}"
                )
            consumed = item.consumed_capacity.get(key)
            if consumed is not None:
                factor = read_child(mapped, "capacityMultiplier", read_quantity)
                _add_amount(amounts.mapped, name, _multiply(consumed, factor))
        elif per_device is not None:
            _add_amount(amounts.mapped, name, per_device)
    overhead = read_child(resource, "overhead", expect_object)
    if overhead is not None:
        for source, total in (("perPod", amounts.per_pod), ("perContainer", amounts.per_container)):
            amount = read_child(overhead, source, read_quantity)
            if amount is not None:
                _add_amount(total, name, amount)


def _multiply(amount: Quantity, factor: Quantity | None) -> Quantity:
    if factor is None or factor.nanos == _NANO:
        return amount
    return Quantity.from_nanos(-(-amount.nanos * factor.nanos // _NANO), amount.format)


def _add_amount(total: dict[str, Quantity], name: str, amount: Quantity) -> None:
    previous = total.get(name)
    total[name] = amount if previous is None else previous.add(amount)


def _find_definitions(
    device: DeviceId, slices: Iterable[ResourceSlice], node: Node
) -> dict[str, Object]:
    published = _find_device(device, slices, node)
    return {} if published is None else _read_definitions(published)


def _read_definitions(device: Object) -> dict[str, Object]:
    return read_entries(device, "nodeAllocatableResources", expect_object)


def _find_device(device_id: DeviceId, slices: Iterable[ResourceSlice], node: Node) -> Object | None:
    """Return a published device that the node can use, as JSON; None if there is none."""
    for item in slices:
        if (item.driver, item.pool) != (device_id.driver, device_id.pool):
            continue
        per_device = bool(item.per_device_node_selection)
        if not per_device and not _node_has(
            node, item.node_name, item.all_nodes, item.node_selector
        ):
            continue
        for device in item.devices:
            if device.name != device_id.device:
                continue
            if per_device and not _node_has(
                node, device.node_name, device.all_nodes, device.node_selector
            ):
                return None
            return device.raw
    return None


def _node_has(node: Node, *node_choice: Any) -> bool:
    try:
        return node_matches(node, *node_choice)
    except AllocationError:
        return False  # A selector that does not parse matches nothing here.


def _containers_of_claims(pod: Object) -> dict[str, list[str]]:
    """Return which containers refer to which claim: reference -> names, init containers first."""
    spec = read_child(expect_object(pod), "spec", expect_object) or {}
    users: dict[str, list[str]] = {}
    for kind in ("initContainers", "containers"):
        for container in read_items(spec, kind, expect_object):
            resources = read_child(container, "resources", expect_object) or {}
            for claim in read_items(resources, "claims", expect_object):
                users.setdefault(read_string(claim, "name"), []).append(
                    read_string(container, "name")
                )
    return users
