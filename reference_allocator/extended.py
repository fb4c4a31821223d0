"""Extended resources that devices satisfy: the claim that the scheduler makes for a pod (KEP-5004).

A container asks for a resource (`nvidia.com/gpu: 2`) and a DeviceClass provides it; where the node
itself has none of it (from a device plugin), the scheduler makes one claim for the pod, with a
request for each container and resource. Source: extendeddynamicresources.go of the scheduler's
dynamicresources plugin and deviceclass/extendedresourcecache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reference_allocator.api import reading
from reference_allocator.api.names import label_key_problems
from reference_allocator.api.records import read_quantity

Object = Mapping[str, Any]

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""`deviceclass.resource.kubernetes.io/NAME` asks for the class NAME without its consent."""

_QUOTA_PREFIX: Final = "requests."


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """The claim that the scheduler makes for the extended resources of a pod on one node.

    Attributes:
        claim: a v1 ResourceClaim without name and uid.
        mappings: v1 ContainerExtendedResourceRequest objects for the status of the pod: which
            container gets the devices of which request.
    """

    claim: dict[str, Any]
    mappings: tuple[dict[str, str], ...]


def is_extended_resource(name: str) -> bool:
    """Return whether devices can stand for a resource of this name (IsDRAExtendedResourceName)."""
    if name.startswith(IMPLICIT_PREFIX):
        return True
    if "/" not in name or "kubernetes.io/" in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not label_key_problems(f"{_QUOTA_PREFIX}{name}")


def classes_by_resource(classes: Iterable[Object]) -> dict[str, str]:
    """Return which class provides which resource: extended resource name -> class name.

    Of several classes with one `extendedResourceName` the newest provides it, of equally old ones
    the first by name.
    Raises InputError: a class has no name, or a field has another type than it should.
    """
    dated_classes = [_read_class(item) for item in classes]
    dated_classes.sort(key=lambda item: item[1])
    dated_classes.sort(
        key=lambda item: item[0], reverse=True
    )  # Stable: the newest first, then by name.
    class_of_resource: dict[str, str] = {}
    for _, name, explicit in dated_classes:
        class_of_resource[f"{IMPLICIT_PREFIX}{name}"] = name
        if explicit is not None:
            class_of_resource.setdefault(explicit, name)
    return class_of_resource


def lacks_resource(pod: Object, node: Object, classes: Mapping[str, str]) -> bool:
    """Return whether a pod asks for a resource that neither a class nor this node provides.

    Whether the node has enough of what it has itself is not looked at (filterExtendedResources).
    Raises InputError: pod or node has not its form.
    """
    allocatable = _read_allocatable(node)
    return any(
        is_extended_resource(name) and name not in classes and name not in allocatable
        for name in _requested_resources(pod)
    )


def extended_claim(pod: Object, node: Object, classes: Mapping[str, str]) -> ExtendedClaim | None:
    """Make the claim for the resources of a pod that devices have to satisfy on this node.

    Returns None where the pod needs no device for its resources here.
    Raises InputError: pod or node has not its form.
    """
    allocatable = _read_allocatable(node)
    names = sorted(
        name
        for name in _requested_resources(pod)
        if is_extended_resource(name) and name in classes and not allocatable.get(name)
    )
    requests: list[dict[str, Any]] = []
    mappings: list[dict[str, str]] = []
    for name in names:
        resource_requests, mapped = _make_requests(_read_containers(pod), name, classes[name])
        requests += resource_requests
        mappings += mapped
    if not requests:
        return None
    requests.sort(key=lambda request: str(request["name"]))
    metadata = (
        reading.read_child(reading.expect_object(pod), "metadata", reading.expect_object) or {}
    )
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": reading.read_string(metadata, "name"),
        "uid": reading.read_string(metadata, "uid"),
        "controller": True,
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{owner['name']}-extended-resources-",
            "namespace": reading.read_string(metadata, "namespace"),
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": requests}},
    }
    return ExtendedClaim(claim, tuple(mappings))


@dataclass(frozen=True, slots=True)
class _Container:
    index: int
    name: str
    short_lived: bool
    """An init container that ends before those after it start."""
    amounts: Mapping[str, int | None]
    """Resource -> amount, None where it is no whole number."""

    def make_request(
        self, resource: str, class_name: str, reusable: Sequence[Mapping[str, Any]]
    ) -> tuple[dict[str, Any] | None, list[dict[str, str]]]:
        """Return its own request, if reusable ones are not enough, and all that it gets devices of.

        ``reusable``: requests of later containers, whose devices it may have before they start.
        """
        missing = self.amounts.get(resource)
        if not missing:
            return None, []
        mapped: list[dict[str, str]] = []
        for request in reusable:
            missing -= request["exactly"]["count"]
            mapped.append(self._mapping(resource, request["name"]))
            if missing <= 0:
                return None, mapped
        name = f"container-{self.index}-request-{sorted(self.amounts).index(resource)}"
        mapped.append(self._mapping(resource, name))
        exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": missing}
        return {"name": name, "exactly": exactly}, mapped

    def _mapping(self, resource: str, request: str) -> dict[str, str]:
        return {"containerName": self.name, "resourceName": resource, "requestName": request}


def _make_requests(
    containers: Sequence[_Container], resource: str, class_name: str
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return the requests for one resource, and which container gets devices of which request.

    Short-lived containers run one after the other, so they share the largest of their requests.
    """
    long_lived: dict[int, dict[str, Any]] = {}
    mappings: list[dict[str, str]] = []
    for container in containers:
        if not container.short_lived:
            request, mapped = container.make_request(resource, class_name, ())
            mappings += mapped
            if request is not None:
                long_lived[container.index] = request
    largest: dict[str, Any] | None = None
    own_requests: set[str] = set()
    early: list[dict[str, str]] = []
    for container in containers:
        if not container.short_lived:
            continue
        later = [request for index, request in long_lived.items() if index >= container.index]
        request, mapped = container.make_request(resource, class_name, later)
        early += mapped
        if request is not None:
            own_requests.add(request["name"])
            if largest is None or request["exactly"]["count"] > largest["exactly"]["count"]:
                largest = request
    if largest is None:
        return [*long_lived.values()], [*mappings, *early]
    for item in early:
        if item["requestName"] in own_requests:
            item["requestName"] = largest["name"]
    return [largest, *long_lived.values()], [*mappings, *early]


def _read_class(item: Object) -> tuple[str, str, str | None]:
    source = reading.expect_object(item)
    metadata = reading.read_child(source, "metadata", reading.expect_object) or {}
    spec = reading.read_child(source, "spec", reading.expect_object) or {}
    created = reading.read_string(metadata, "creationTimestamp")
    return (
        created,
        reading.required_string(metadata, "name"),
        reading.optional_string(spec, "extendedResourceName"),
    )


def _read_containers(pod: Object) -> list[_Container]:
    spec = reading.read_child(reading.expect_object(pod), "spec", reading.expect_object) or {}
    init = reading.read_items(spec, "initContainers", reading.expect_object)
    containers = (*init, *reading.read_items(spec, "containers", reading.expect_object))
    return [
        _Container(
            index,
            reading.read_string(container, "name"),
            index < len(init) and reading.read_string(container, "restartPolicy") != "Always",
            reading.read_child(container, "resources", _read_amounts) or {},
        )
        for index, container in enumerate(containers)
    ]


def _read_amounts(resources: object) -> dict[str, int | None]:
    amounts = reading.read_entries(reading.expect_object(resources), "requests", read_quantity)
    return {name: amount.as_int64() for name, amount in amounts.items()}


def _requested_resources(pod: Object) -> set[str]:
    """Return the resources of which the pod asks for more than nothing."""
    return {
        name
        for container in _read_containers(pod)
        for name, amount in container.amounts.items()
        if amount != 0
    }


def _read_allocatable(node: Object) -> dict[str, int]:
    """Return what the node itself has: resource -> whole units."""
    status = reading.read_child(reading.expect_object(node), "status", reading.expect_object) or {}
    amounts = reading.read_entries(status, "allocatable", read_quantity)
    return {name: -(-amount.nanos // 10**9) for name, amount in amounts.items()}
