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
from reference_allocator.api.records import quantity

Object = Mapping[str, Any]

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""`deviceclass.resource.kubernetes.io/NAME` asks for the class NAME without its consent."""

_QUOTA_PREFIX: Final = "requests."


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """What a pod gets through DRA on one node.

    Attributes:
        claim: a v1 ResourceClaim without name and uid.
        mappings: v1 ContainerExtendedResourceRequest objects for the status of the pod: which
            container gets the devices of which request.
    """

    claim: dict[str, Any]
    mappings: tuple[dict[str, str], ...]


def is_extended_resource(name: str) -> bool:
    """Whether devices can stand for a resource of this name (IsDRAExtendedResourceName)."""
    if name.startswith(IMPLICIT_PREFIX):
        return True
    if "/" not in name or "kubernetes.io/" in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not label_key_problems(f"{_QUOTA_PREFIX}{name}")


def classes_by_resource(classes: Iterable[Object]) -> dict[str, str]:
    """Which class provides which resource: extended resource name -> class name.

    Of several classes with one `extendedResourceName` the newest provides it, of equally old ones
    the first by name.
    Raises InputError: a class has no name, or a field has another type than it should.
    """
    read = [_class(item) for item in classes]
    read.sort(key=lambda item: item[1])
    read.sort(key=lambda item: item[0], reverse=True)  # Stable: the newest first, then by name.
    found: dict[str, str] = {}
    for _, name, explicit in read:
        found[f"{IMPLICIT_PREFIX}{name}"] = name
        if explicit is not None:
            found.setdefault(explicit, name)
    return found


def extended_claim(pod: Object, node: Object, classes: Mapping[str, str]) -> ExtendedClaim | None:
    """The claim for the resources of a pod that devices have to satisfy on this node.

    Returns None where the pod needs no device for its resources here.
    Raises InputError: pod or node has not its form.
    """
    allocatable = _allocatable(node)
    names = sorted(
        name
        for name in _wanted(pod)
        if is_extended_resource(name) and name in classes and not allocatable.get(name)
    )
    requests: list[dict[str, Any]] = []
    mappings: list[dict[str, str]] = []
    for name in names:
        found, mapped = _of_resource(_containers(pod), name, classes[name])
        requests += found
        mappings += mapped
    if not requests:
        return None
    requests.sort(key=lambda request: str(request["name"]))
    metadata = reading.child(reading.mapping(pod), "metadata", reading.mapping) or {}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": reading.string(metadata, "name"),
        "uid": reading.string(metadata, "uid"),
        "controller": True,
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{owner['name']}-extended-resources-",
            "namespace": reading.string(metadata, "namespace"),
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

    def request(
        self, resource: str, class_name: str, reusable: Sequence[Mapping[str, Any]]
    ) -> tuple[dict[str, Any] | None, list[dict[str, str]]]:
        """Its own request, if what it can reuse is not enough, and where its devices come from."""
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


def _of_resource(
    containers: Sequence[_Container], resource: str, class_name: str
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The requests for one resource; short-lived containers share the largest of theirs."""
    long_lived: dict[int, dict[str, Any]] = {}
    mappings: list[dict[str, str]] = []
    for container in containers:
        if not container.short_lived:
            request, mapped = container.request(resource, class_name, ())
            mappings += mapped
            if request is not None:
                long_lived[container.index] = request
    largest: dict[str, Any] | None = None
    own: set[str] = set()
    early: list[dict[str, str]] = []
    for container in containers:
        if not container.short_lived:
            continue
        later = [request for index, request in long_lived.items() if index >= container.index]
        request, mapped = container.request(resource, class_name, later)
        early += mapped
        if request is not None:
            own.add(request["name"])
            if largest is None or request["exactly"]["count"] > largest["exactly"]["count"]:
                largest = request
    if largest is None:
        return [*long_lived.values()], [*mappings, *early]
    for item in early:
        if item["requestName"] in own:
            item["requestName"] = largest["name"]
    return [largest, *long_lived.values()], [*mappings, *early]


def _class(item: Object) -> tuple[str, str, str | None]:
    source = reading.mapping(item)
    metadata = reading.child(source, "metadata", reading.mapping) or {}
    spec = reading.child(source, "spec", reading.mapping) or {}
    created = reading.string(metadata, "creationTimestamp")
    return (
        created,
        reading.required_string(metadata, "name"),
        reading.optional_string(spec, "extendedResourceName"),
    )


def _containers(pod: Object) -> list[_Container]:
    spec = reading.child(reading.mapping(pod), "spec", reading.mapping) or {}
    init = reading.items(spec, "initContainers", reading.mapping)
    containers = (*init, *reading.items(spec, "containers", reading.mapping))
    return [
        _Container(
            index,
            reading.string(container, "name"),
            index < len(init) and reading.string(container, "restartPolicy") != "Always",
            reading.child(container, "resources", _amounts) or {},
        )
        for index, container in enumerate(containers)
    ]


def _amounts(resources: object) -> dict[str, int | None]:
    amounts = reading.entries(reading.mapping(resources), "requests", quantity)
    return {name: amount.as_int64() for name, amount in amounts.items()}


def _wanted(pod: Object) -> set[str]:
    """Resources of which the pod asks for more than nothing."""
    return {
        name
        for container in _containers(pod)
        for name, amount in container.amounts.items()
        if amount != 0
    }


def _allocatable(node: Object) -> dict[str, int]:
    """Resource -> whole units that the node itself has."""
    status = reading.child(reading.mapping(node), "status", reading.mapping) or {}
    amounts = reading.entries(status, "allocatable", quantity)
    return {name: -(-amount.nanos // 10**9) for name, amount in amounts.items()}
