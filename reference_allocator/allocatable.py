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
from reference_allocator.api.reading import child, entries, items, mapping, string
from reference_allocator.api.records import quantity
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
    """Devices whose share of the node cannot be computed: the pod cannot be scheduled."""


@dataclass(slots=True)
class _Amounts:
    mapped: dict[str, Quantity] = field(default_factory=dict)
    per_pod: dict[str, Quantity] = field(default_factory=dict)
    per_container: dict[str, Quantity] = field(default_factory=dict)


def claim_statuses(
    pod: Object, claims: Sequence[PodClaim], slices: Iterable[ResourceSlice], node: Node
) -> list[dict[str, Any]]:
    """What each claim of a pod comes to, for `status.nodeAllocatableResourceClaimStatuses`.

    Claims without devices that have to do with the node's resources are left out.
    ``pod``: a v1 Pod; which of its containers refer to which claim.
    Returns v1 NodeAllocatableResourceClaimStatus objects, sorted by the name of the claim.

    Raises:
        AllocatableError: a device is gone or not for this node, or the capacity that a mapping
            names has not been consumed.
        InputError: an object has not its form; names the path.
    """
    published = list(slices)
    users = _users(pod)
    statuses: list[dict[str, Any]] = []
    for claim in claims:
        results = read_results(claim.allocation)
        if not any(_resources(item.id, published, node) for item in results):
            continue
        amounts = _Amounts()
        for item in results:
            device = _find(item.id, published, node)
            if device is None:
                raise AllocatableError(
                    f"claim {claim.name}, device {item.id.device}, driver {item.id.driver}: "
                    f"not found in pool {item.id.pool} on node {node.name}"
                )
            for name, resource in _definitions(device).items():
                _add(amounts, name, resource, item, claim)
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
        overhead = list(_overhead(amounts))
        if overhead:
            status["overhead"] = overhead
        statuses.append(status)
    return sorted(statuses, key=lambda item: str(item["resourceClaimName"]))


def demand(statuses: Iterable[Object]) -> dict[str, Quantity]:
    """What the claims of a pod add to its requests: resource -> amount."""
    total: dict[str, Quantity] = {}
    for status in statuses:
        containers = len(status.get("containers") or ())
        for item in status.get("mapping") or ():
            _plus(total, item["name"], quantity(item["quantity"]))
        for item in status.get("overhead") or ():
            if item.get("perPod") is not None:
                _plus(total, item["name"], quantity(item["perPod"]))
            if item.get("perContainer") is not None and containers:
                amount = quantity(item["perContainer"])
                product = Quantity.from_nanos(amount.nanos * containers, amount.format)
                _plus(total, item["name"], product)
    return total


def lacking(
    requests: Mapping[str, Quantity],
    extra: Mapping[str, Quantity],
    allocatable: Mapping[str, Quantity],
    requested: Mapping[str, Quantity],
) -> list[str]:
    """Resources of which the node has not enough left, as the scheduler names them, sorted.

    Only cpu, memory, ephemeral-storage and huge pages are looked at; others cannot be devices.

    Args:
        requests: what the pod itself asks for.
        allocatable: `status.allocatable` of the node.
        requested: what pods on the node have.
    """

    def amount(source: Mapping[str, Quantity], name: str, unit: int) -> int:
        found = source.get(name)
        return 0 if found is None else -(-found.nanos // unit)

    found: list[str] = []
    for name in sorted({*requests, *extra}):
        if name not in _COUNTED and not name.startswith(_HUGE_PAGES):
            continue
        unit = _NANO // 1000 if name == "cpu" else _NANO
        together = dict(requests)
        if name in extra:
            _plus(together, name, extra[name])
        wanted = amount(together, name, unit)
        left = amount(allocatable, name, unit) - amount(requested, name, unit)
        if wanted > left and (wanted > 0 or name.startswith(_HUGE_PAGES)):
            found.append(f"Insufficient {name}")
    return found


def is_exclusive(allocation: Object, slices: Iterable[ResourceSlice], node: Node) -> bool:
    """Whether a claim must not be shared by pods, because a device stands for node resources.

    Raises InputError: the allocation has not its form.
    """
    published = list(slices)
    return any(
        resource.get("mapping") is not None
        for item in read_results(allocation)
        for resource in _resources(item.id, published, node).values()
    )


def _overhead(amounts: _Amounts) -> Iterator[dict[str, str]]:
    for name in sorted({*amounts.per_pod, *amounts.per_container}):
        entry = {"name": name}
        if name in amounts.per_pod:
            entry["perPod"] = str(amounts.per_pod[name])
        if name in amounts.per_container:
            entry["perContainer"] = str(amounts.per_container[name])
        yield entry


def _add(
    amounts: _Amounts, name: str, resource: Object, item: AllocatedDevice, claim: PodClaim
) -> None:
    mapped = child(resource, "mapping", mapping)
    if mapped is not None:
        key = string(mapped, "capacityKey")
        each = child(mapped, "deviceMultiplier", quantity)
        if key:
            if not item.consumed_capacity:
                raise AllocatableError(
                    f"claim {claim.name}, device {item.id.device}: ConsumedCapacity is nil, but "
                    f"Capacity key '{key}' is set in NodeAllocatableResources for resource {name}"
                )
            consumed = item.consumed_capacity.get(key)
            if consumed is not None:
                factor = child(mapped, "capacityMultiplier", quantity)
                _plus(amounts.mapped, name, _times(consumed, factor))
        elif each is not None:
            _plus(amounts.mapped, name, each)
    overhead = child(resource, "overhead", mapping)
    if overhead is not None:
        for source, total in (("perPod", amounts.per_pod), ("perContainer", amounts.per_container)):
            amount = child(overhead, source, quantity)
            if amount is not None:
                _plus(total, name, amount)


def _times(amount: Quantity, factor: Quantity | None) -> Quantity:
    if factor is None or factor.nanos == _NANO:
        return amount
    return Quantity.from_nanos(-(-amount.nanos * factor.nanos // _NANO), amount.format)


def _plus(total: dict[str, Quantity], name: str, amount: Quantity) -> None:
    before = total.get(name)
    total[name] = amount if before is None else before.add(amount)


def _resources(device: DeviceId, slices: Iterable[ResourceSlice], node: Node) -> dict[str, Object]:
    found = _find(device, slices, node)
    return {} if found is None else _definitions(found)


def _definitions(device: Object) -> dict[str, Object]:
    return entries(device, "nodeAllocatableResources", mapping)


def _find(wanted: DeviceId, slices: Iterable[ResourceSlice], node: Node) -> Object | None:
    """A published device that the node can use, as JSON."""
    for item in slices:
        if (item.driver, item.pool) != (wanted.driver, wanted.pool):
            continue
        per_device = bool(item.per_device_node_selection)
        if not per_device and not _is_for(node, item.node_name, item.all_nodes, item.node_selector):
            continue
        for device in item.devices:
            if device.name != wanted.device:
                continue
            if per_device and not _is_for(
                node, device.node_name, device.all_nodes, device.node_selector
            ):
                return None
            return device.raw
    return None


def _is_for(node: Node, *place: Any) -> bool:
    try:
        return node_matches(node, *place)
    except AllocationError:
        return False  # A selector that does not parse matches nothing here.


def _users(pod: Object) -> dict[str, list[str]]:
    """Reference to a claim -> containers that have it, init containers first."""
    spec = child(mapping(pod), "spec", mapping) or {}
    users: dict[str, list[str]] = {}
    for kind in ("initContainers", "containers"):
        for container in items(spec, kind, mapping):
            resources = child(container, "resources", mapping) or {}
            for claim in items(resources, "claims", mapping):
                users.setdefault(string(claim, "name"), []).append(string(container, "name"))
    return users
