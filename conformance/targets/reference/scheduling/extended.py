"""Extended resources that devices satisfy: the special claim that the scheduler makes for a pod.

Follows pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go: one claim
for each pod, a request for each container and resource, and in the pod's status which container
gets the devices of which request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from conformance.targets.base import Obj
from conformance.targets.reference.scheduling.nodefit import amount_of
from conformance.targets.reference.store import name_of, namespace_of, uid_of
from reference_allocator.amounts import NANO

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


def classes_by_resource(classes: Sequence[Obj]) -> dict[str, str]:
    """Extended resource name -> DeviceClass; of several the newest, then the first by name."""
    found: dict[str, str] = {}
    for device_class in sorted(classes, key=_age_and_name, reverse=True):
        name = name_of(device_class)
        found.setdefault(f"{IMPLICIT_PREFIX}{name}", name)
        explicit = (device_class.get("spec") or {}).get("extendedResourceName")
        if explicit:
            found.setdefault(explicit, name)
    return found


def _age_and_name(device_class: Obj) -> tuple[str, tuple[int, ...]]:
    reversed_name = tuple(-ord(letter) for letter in name_of(device_class))
    return device_class["metadata"]["creationTimestamp"], reversed_name


def wanted(pod: Obj, classes: Mapping[str, str]) -> bool:
    """Whether the pod asks for a resource that a class provides."""
    return any(
        name in classes and amount
        for container in _containers(pod)
        for name, amount in _requests(container).items()
    )


def find(pod: Obj, claims: Sequence[Obj]) -> Obj | None:
    """The pod's special claim, if it was made before."""
    for claim in claims:
        if (claim["metadata"].get("annotations") or {}).get(ANNOTATION) != "true":
            continue
        owners = claim["metadata"].get("ownerReferences") or []
        if any(owner["uid"] == uid_of(pod) for owner in owners):
            return claim
    return None


def build(pod: Obj, node: Obj, classes: Mapping[str, str]) -> tuple[Obj, list[Obj]]:
    """The special claim for a node, not stored yet, and the mapping of containers to requests.

    A resource that the node itself has (from a device plugin) is left to the node. A short-lived
    init container reuses the devices of containers that come after it.
    """
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    containers = _containers(pod)
    init = len(pod["spec"].get("initContainers") or [])
    short = [index for index in range(init) if containers[index].get("restartPolicy") != "Always"]
    names = sorted(
        {
            name
            for container in containers
            for name in _requests(container)
            if name in classes and not amount_of(allocatable.get(name, "0"))
        }
    )
    requests: list[Obj] = []
    mappings: list[Obj] = []
    for name in names:
        long_lived: dict[int, Obj] = {}
        for index in range(len(containers)):
            if index not in short:
                request, mapping = _request(index, containers[index], name, classes[name], [])
                mappings += mapping
                if request is not None:
                    long_lived[index] = request
        largest: Obj | None = None
        short_mappings: list[Obj] = []
        own_names = set()
        for index in short:
            reusable = [request for at, request in long_lived.items() if at >= index]
            request, mapping = _request(index, containers[index], name, classes[name], reusable)
            short_mappings += mapping
            if request is not None:
                own_names.add(request["name"])
                if largest is None or largest["exactly"]["count"] < request["exactly"]["count"]:
                    largest = request
        if largest is not None:
            for mapping_entry in short_mappings:
                if mapping_entry["requestName"] in own_names:
                    mapping_entry["requestName"] = largest["name"]
            requests.append(largest)
        requests += long_lived.values()
        mappings += short_mappings
    claim: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{name_of(pod)}-extended-resources-",
            "namespace": namespace_of(pod),
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": name_of(pod),
                    "uid": uid_of(pod),
                    "controller": True,
                }
            ],
        },
        "spec": {"devices": {"requests": sorted(requests, key=lambda item: str(item["name"]))}},
        "status": {},
    }
    return claim, mappings


def _request(
    index: int, container: Obj, resource: str, class_name: str, reusable: Sequence[Obj]
) -> tuple[Obj | None, list[Obj]]:
    amounts = _requests(container)
    count = amounts.get(resource, 0)
    if not count:
        return None, []
    mappings = []
    for request in reusable:
        count -= request["exactly"]["count"]
        mappings.append(_mapping(container, resource, request["name"]))
        if count <= 0:
            return None, mappings
    name = f"container-{index}-request-{sorted(amounts).index(resource)}"
    mappings.append(_mapping(container, resource, name))
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": exactly}, mappings


def _mapping(container: Obj, resource: str, request: str) -> Obj:
    return {
        "containerName": container["name"],
        "resourceName": resource,
        "requestName": request,
    }


def _containers(pod: Obj) -> list[Obj]:
    return [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]


def _requests(container: Obj) -> dict[str, int]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: amount_of(amount) // NANO for name, amount in requests.items()}
