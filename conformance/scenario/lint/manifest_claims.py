"""What is retired in the claims, templates, classes and slices of a manifest file, and in pods.

The API has changed its shape three times (v1alpha2, v1beta1, v1), and the web is full of examples
of each. The tables say what took the place of a field that is gone; sources are the API types of
those versions (staging/src/k8s.io/api/resource) and the release notes of Kubernetes 1.31 and 1.32.

A pod spec is recognised by its list of containers, so the templates of Jobs, Deployments and of any
custom resource are checked alike. What the API server refuses is in
`conformance.scenario.lint.refusals`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.scenario.documents.yamlfile import (
    PathTuple,
    Problem,
    as_mapping,
    list_items,
    list_mappings,
)
from reference_allocator.api import schema

CLAIM_SPEC_RETIRED = {
    "resourceClassName": (
        "resourceClassName is gone since Kubernetes 1.31; name a DeviceClass in"
        " devices.requests[].exactly.deviceClassName"
    ),
    "parametersRef": (
        "parametersRef is gone since Kubernetes 1.31; write what chooses devices as"
        " devices.requests[].exactly.selectors[].cel, and what configures them inline in"
        " devices.config[].opaque.parameters"
    ),
    "parameters": (
        "parameters is gone; write what chooses devices as"
        " devices.requests[].exactly.selectors[].cel and count, and what configures them inline in"
        " devices.config[].opaque.parameters"
    ),
    "controller": (
        "controller is gone since Kubernetes 1.32: the scheduler allocates devices itself; remove"
        " it"
    ),
    "allocationMode": (
        "a claim has no allocationMode since Kubernetes 1.31: devices are always allocated when"
        " the first pod is scheduled, as WaitForFirstConsumer did; remove it (All and ExactCount"
        " belong to devices.requests[].exactly.allocationMode)"
    ),
    "count": "count belongs to a request: devices.requests[].exactly.count",
    "sharing": (
        "sharing is gone; pods share a device by naming the same ResourceClaim, and how the driver"
        " shares it is configured in devices.config[].opaque.parameters"
    ),
    "shareable": "shareable is gone; every ResourceClaim can be used by several pods",
    "selector": "selector is gone; write a CEL expression in devices.requests[].exactly.selectors",
    "constraints": (
        "constraints belong to spec.devices.constraints (matchAttribute); to choose nodes by label,"
        " use nodeSelector in the pod"
    ),
}
"""Fields of a ResourceClaim's spec (or of the vendor parameters that articles put there)."""

CLASS_RETIRED = {
    "driverName": (
        "driverName is gone since Kubernetes 1.31; choose the driver's devices in"
        " spec.selectors[].cel.expression: device.driver == {value}"
    ),
    "structuredParameters": (
        "structuredParameters is gone since Kubernetes 1.31: it is the only way now; remove it"
    ),
    "parametersRef": (
        "parametersRef is gone since Kubernetes 1.31; write the parameters inline in"
        " spec.config[].opaque.parameters"
    ),
    "suitableNodes": (
        "suitableNodes is gone since Kubernetes 1.32; devices are on the nodes that their"
        " ResourceSlices name; to narrow them further use nodeSelector in the pod"
    ),
}
"""Fields of a ResourceClass or DeviceClass, at the top or in its spec."""


def check_class(data: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    """Yield the problems of a ResourceClass or DeviceClass that was found at ``path``."""
    yield from _check_retired_fields(data, path, CLASS_RETIRED)
    yield from _check_retired_fields(as_mapping(data.get("spec")), (*path, "spec"), CLASS_RETIRED)


def check_slice(data: Mapping[str, Any], version: str, path: PathTuple) -> Iterator[Problem]:
    """Yield problems of a ResourceSlice: v1alpha2 had no spec, v1beta1 had ``basic`` devices."""
    for field in ("driverName", "nodeName", "namedResources"):
        if field in data:
            new = {"driverName": "spec.driver", "nodeName": "spec.nodeName"}
            yield Problem(
                (*path, field),
                f"{field} is gone since Kubernetes 1.31; use {new.get(field, 'spec.devices')}",
            )
    for index, device in list_mappings(as_mapping(data.get("spec")).get("devices")):
        device_path = (*path, "spec", "devices", index)
        if "basic" in device and version != "v1beta1":
            yield Problem(
                (*device_path, "basic"),
                f"basic is for v1beta1 only; in {version} write attributes and capacity directly"
                " in the device",
            )
        for field in ("attributes", "capacity") if version == "v1beta1" else ():
            if field in device:
                text = "in v1beta1 attributes and capacity are below basic; better use v1"
                yield Problem((*device_path, field), text)


def check_claim_spec(spec: Any, version: str, path: PathTuple) -> Iterator[Problem]:
    """Yield the problems of a ResourceClaim's spec, or of the one inside a template."""
    if not isinstance(spec, dict):
        yield Problem(path, "is missing; a claim needs spec.devices.requests")
        return
    retired = list(_check_retired_fields(spec, path, CLAIM_SPEC_RETIRED))
    parameters = as_mapping(spec.get("parameters"))
    retired += _check_retired_fields(parameters, (*path, "parameters"), CLAIM_SPEC_RETIRED)
    yield from retired
    devices = as_mapping(spec.get("devices"))
    requests = devices.get("requests")
    if not requests and not retired:
        yield Problem(
            (*path, "devices"), "asks for no device; add devices.requests", severity="warning"
        )
    for index, request in list_mappings(requests):
        yield from _check_request(request, version, (*path, "devices", "requests", index))


def _check_request(request: Mapping[str, Any], version: str, path: PathTuple) -> Iterator[Problem]:
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    device_requests = [
        ((*path, "firstAvailable", i), item) for i, item in list_mappings(alternatives)
    ]
    if version == "v1beta1":
        device_requests.append((path, request))
        if exactly is not None:
            yield Problem(
                (*path, "exactly"), "v1beta1 knows no exactly; set apiVersion: resource.k8s.io/v1"
            )
    else:
        device_requests.append(((*path, "exactly"), as_mapping(exactly)))
        for field in schema.types()["resource/v1.ExactDeviceRequest"]:
            if field in request:
                yield Problem(
                    (*path, field),
                    f"{field} directly in a request is v1beta1; in {version} write it below"
                    " exactly",
                )
    for request_path, device_request in device_requests:
        mode = device_request.get("allocationMode")
        if mode in ("WaitForFirstConsumer", "Immediate"):
            yield Problem(
                (*request_path, "allocationMode"),
                f"{mode} is gone since Kubernetes 1.31: devices are always allocated when the first"
                " pod is scheduled; remove it, or write ExactCount or All",
            )


def _check_retired_fields(
    data: Mapping[str, Any], path: PathTuple, table: Mapping[str, str]
) -> Iterator[Problem]:
    for field, message in table.items():
        if field in data:
            value = data[field] if isinstance(data[field], str) else "..."
            yield Problem((*path, field), message.replace("{value}", f'"{value}"'))


CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
SOURCES = {
    "resourceClaimName": "ResourceClaim",
    "resourceClaimTemplateName": "ResourceClaimTemplate",
}
"""Field of an entry of ``resourceClaims`` -> the kind that it names."""


def pod_specs(data: Any, path: PathTuple = ()) -> Iterator[tuple[PathTuple, Mapping[str, Any]]]:
    """Yield every pod spec in ``data``, which was found at ``path``.

    In an object of a kind that the API has, those that it has by its type.
    """
    root = _root_of(data)
    if root is not None:
        parts = schema.list_parts(root, data, _POD_SPECS, path)
        yield from ((place, part) for place, _, part in parts if _is_pod_spec(part))
        return
    waiting = [(path, data)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict) and _is_pod_spec(value):
            yield path, value
        inner = [item for item in list_items(value) if isinstance(item[1], (dict, list))]
        waiting += [((*path, key), item) for key, item in inner[::-1]]


_POD_SPECS: Final = frozenset({"PodSpec"})


def _is_pod_spec(value: Mapping[str, Any]) -> bool:
    containers = value.get("containers")
    return isinstance(containers, list) and all(isinstance(item, dict) for item in containers)


def _root_of(data: Any) -> str | None:
    kind, version = (as_mapping(data).get(field) for field in ("kind", "apiVersion"))
    is_told = isinstance(kind, str) and isinstance(version, str)
    return schema.root_of(kind, version) if is_told else None


def check_pods(data: Any, path: PathTuple = ()) -> Iterator[Problem]:
    """Yield what is retired in every pod spec in ``data``, which was found at ``path``."""
    for spec_path, spec in pod_specs(data, path):
        for index, claim in list_mappings(spec.get("resourceClaims")):
            if "source" in claim:
                fields = [name for name in SOURCES if name in as_mapping(claim["source"])]
                yield Problem(
                    (*spec_path, "resourceClaims", index, "source"),
                    "source is gone since Kubernetes 1.31; write"
                    f" {' or '.join(fields or SOURCES)} directly beside name",
                )
