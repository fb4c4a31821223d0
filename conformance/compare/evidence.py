"""Read evidence: what a snapshot leaves open, and where a pod that waits may run.

To say that an allocation was missed, nothing but devices may keep the pod from a node. So a node
counts only if it suits the pod by all that is in a snapshot: scheduling off, taints, readiness, the
pod's node selector and affinity, and the nodes of claims that the pod has been given already. CPU
and memory are not in it: where devices provide them, the pod's condition is believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kube.base.errors import UsageError
from kube.slices import is_allocated
from reference_allocator.api import NodeSelector
from reference_allocator.api.reading import (
    InputError,
    expect_object,
    read_child,
    read_items,
    read_string,
)
from reference_allocator.cel import CelUnsupportedError
from reference_allocator.errors import AllocationError
from reference_allocator.rules.node_eligibility import node_problem, selector_matches
from reference_allocator.snapshot import Snapshot

Obj = dict[str, Any]
Object = Mapping[str, Any]
T = TypeVar("T")


def ask_reference(ask: Callable[[], T]) -> T:
    """Ask the reference; malformed evidence becomes one UsageError with its JSON path."""
    try:
        return ask()
    except CelUnsupportedError as error:
        raise UsageError(f"not judged: {error.message}") from None
    except InputError as error:
        raise UsageError(f"{error}; the snapshot or the decision is damaged") from None
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        # Evidence from a newer API may have what the reference does not know. That must not end a
        # run of an hour, and must not count as a verdict either: it is reported as not judged.
        raise UsageError(
            f"$: the reference cannot read this ({type(error).__name__}: {error}); the snapshot or"
            " the decision is damaged, or of a newer Kubernetes than the suite knows"
        ) from error


def undecided_claims(snapshot: Obj) -> tuple[Obj, ...]:
    """Return the claims that a snapshot leaves to be allocated."""
    read = ask_reference(lambda: Snapshot.from_dict(snapshot))
    return tuple(dict(claim) for claim in read.claims if not is_allocated(claim))


def eligible_nodes(
    snapshot: Obj, pod: Object | None = None, *, of_claims: bool = True
) -> tuple[str, ...]:
    """Return the nodes of a snapshot that suit a v1 Pod, in its order. Raises UsageError.

    Without a pod, any pod is meant: a node with a blocking taint then counts for none.
    ``of_claims``: only those where the devices that the pod has been given can be used.
    """

    def ask() -> tuple[str, ...]:
        read = Snapshot.from_dict(snapshot)
        claim_selectors: list[NodeSelector] = []
        pod_spec: Object = {}
        if pod is not None:
            try:
                pod_spec = read_child(pod, "spec", expect_object) or {}
                claim_selectors = selectors_of(pod, read) if of_claims else []
                find_obstacle(
                    {}, pod_spec, claim_selectors
                )  # what is wrong with the pod is not a node's fault
            except InputError as error:
                raise error.with_parent("pod") from None
        suited = []
        for index, node in enumerate(read.nodes):
            try:
                if _is_ready(node) and find_obstacle(node, pod_spec, claim_selectors) is None:
                    suited.append(name_of(node))
            except InputError as error:
                raise error.with_parent("nodes", index) from None
        return tuple(suited)

    return ask_reference(ask)


def lacks_node_resources(snapshot: Obj, pod: Object | None, allocations: Sequence[Object]) -> bool:
    """Return whether a pod waits for what its node lacks beside, or because of, devices (KEP-5517).

    The pod's condition names the resource, and the pod requests it or devices that the reference
    would allocate count against it (nodeAllocatableResources).
    Malformed evidence is a UsageError.
    """

    def ask() -> bool:
        if pod is None:
            return False
        status = read_child(pod, "status", expect_object) or {}
        messages = [
            read_string(condition, "message")
            for condition in read_items(status, "conditions", expect_object)
            if condition.get("type") == "PodScheduled"
        ]
        allocated = {
            (result["driver"], result["pool"], result["device"])
            for allocation in allocations
            for result in (allocation.get("devices") or {}).get("results") or ()
        }
        of_devices = {
            name
            for item in Snapshot.from_dict(snapshot).slices
            for device in item["spec"].get("devices") or ()
            if (item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"]) in allocated
            for name in device.get("nodeAllocatableResources") or ()
        }
        names = of_devices.union(_requested_resources(pod))
        return any(f"Insufficient {name}" in text for name in names for text in messages)

    return ask_reference(ask)


def _requested_resources(pod: Object) -> Iterator[str]:
    """Yield the resources that a pod or a container of it requests."""
    spec = read_child(pod, "spec", expect_object) or {}
    for holder in (
        spec,
        *read_items(spec, "containers", expect_object),
        *read_items(spec, "initContainers", expect_object),
    ):
        yield from (
            read_child(
                read_child(holder, "resources", expect_object) or {}, "requests", expect_object
            )
            or {}
        )


def node_named(snapshot: Snapshot, name: str) -> Object:
    """Return a node of a snapshot by its name. Raises UsageError: it has none of that name."""
    for node in snapshot.nodes:
        if name_of(node) == name:
            return node
    names = ", ".join(map(name_of, snapshot.nodes)) or "none"
    raise UsageError(f"$.nodes: node {name!r} is not in the snapshot (it has {names})")


def mapping_field(obj: Object, field: str) -> Object:
    """Return the value of a field, an empty mapping where that is no object."""
    value = obj.get(field)
    return value if isinstance(value, Mapping) else {}


def name_of(obj: Object) -> str:
    """Return ``metadata.name`` of an object that may be malformed, empty where there is none."""
    return str(mapping_field(obj, "metadata").get("name", ""))


def key_of(obj: Object) -> tuple[str, str]:
    """Return namespace and name of an object, empty where it has none."""
    metadata = obj.get("metadata")
    if metadata.__class__ is not dict and not isinstance(metadata, Mapping):
        return "", ""  # asking for the class first, because asking for the abstract one is slow
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def full_name(obj: Object) -> str:
    """Return ``namespace/name``, as users write it."""
    return "/".join(key_of(obj))


def has_ended(pod: Object) -> bool:
    """Return whether none of a pod's containers will ever run again."""
    return mapping_field(pod, "status").get("phase") in {"Succeeded", "Failed"}


def _is_ready(node: Object) -> bool:
    status = read_child(node, "status", expect_object) or {}
    conditions = read_items(status, "conditions", expect_object)
    ready = [read_string(item, "status") for item in conditions if item.get("type") == "Ready"]
    return all(value == "True" for value in ready)  # reduced snapshots have no conditions


def find_obstacle(
    node: Object, pod_spec: Object, claim_selectors: Sequence[NodeSelector]
) -> str | None:
    """Return what keeps a pod from a node beside devices and resources; None if nothing does.

    ``claim_selectors``: what a node must match because of the pod's claims (`selectors_of`).
    Raises InputError: an object has not the form of its kind.
    """
    try:
        problem = node_problem(node, pod_spec)
        if problem is None and not all(selector_matches(item, node) for item in claim_selectors):
            problem = "the pod's other claims have devices elsewhere"
    except AllocationError as error:
        return str(error)  # a selector that does not parse keeps the pod from every node
    return problem


def claim_names(pod: Object) -> Iterator[str]:
    """Yield the names of a pod's ResourceClaims: named by it, or made for it."""
    spec, status = (
        read_child(pod, "spec", expect_object) or {},
        read_child(pod, "status", expect_object) or {},
    )
    extended = read_child(status, "extendedResourceClaimStatus", expect_object) or {}
    entries = (
        *read_items(spec, "resourceClaims", expect_object),
        *read_items(status, "resourceClaimStatuses", expect_object),
        extended,
    )
    for entry in entries:
        name = read_string(entry, "resourceClaimName")
        if name:
            yield name


def node_selector_of(claim: Object) -> NodeSelector | None:
    """Return what a node must match because of the devices that a claim has."""
    status = read_child(claim, "status", expect_object) or {}
    allocation = read_child(status, "allocation", expect_object) or {}
    return read_child(allocation, "nodeSelector", NodeSelector.from_dict)


def selectors_of(pod: Object, snapshot: Snapshot) -> list[NodeSelector]:
    """Return what a node must match because of the claims that the pod has been given already."""
    namespace = key_of(pod)[0]
    keys = {(namespace, name) for name in claim_names(pod)}
    held = (node_selector_of(claim) for claim in snapshot.allocated if key_of(claim) in keys)
    return [selector for selector in held if selector is not None]


def find_closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is meant: one like it, or the only one that it is a part of."""
    # Imported here: it has pydantic by it, and only a name that is not there needs it.
    from conformance.scenario.documents.validate import find_nearest

    names = set(known)
    whole = [item for item in sorted(names) if _is_part(name, item) or _is_part(item, name)]
    return find_nearest(name, names) or (whole[0] if len(whole) == 1 else None)


def _is_part(short: str, long: str) -> bool:
    """Return whether a name is a part of a qualified one, as ``gpu`` is of ``gpu.example.com``."""
    return short.casefold() in re.split("[./]", long.casefold())


def named_classes(claim: Object) -> Iterator[str]:
    """Yield the DeviceClasses that the requests of a claim name."""
    devices = mapping_field(mapping_field(claim, "spec"), "devices")
    for request in devices.get("requests") or ():
        for body in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if body and body.get("deviceClassName"):
                yield str(body["deviceClassName"])
