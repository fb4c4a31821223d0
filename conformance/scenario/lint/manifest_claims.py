"""What is wrong in the claims, templates, classes and slices of a manifest file, and in pods.

The API has changed its shape three times (v1alpha2, v1beta1, v1), and the web is full of examples
of each. The tables say what took the place of a field that is gone; sources are the API types of
those versions (staging/src/k8s.io/api/resource) and the release notes of Kubernetes 1.31 and 1.32.

A pod spec is recognised by its list of containers, so the templates of Jobs, Deployments and of any
custom resource are checked alike. The rules are those of the API server
(pkg/apis/core/validation), and its words are used so that users find them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.scenario.documents.yamlfile import (
    PathTuple,
    Problem,
    as_mapping,
    as_text,
    list_mappings,
    walk,
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

_MODES = ("ExactCount", "All")


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
        elif version == "v1beta1" and ("attributes" in device or "capacity" in device):
            yield Problem(
                device_path, "in v1beta1 attributes and capacity are below basic; better use v1"
            )


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
    if not request.get("name"):
        yield Problem(path, "a request needs a name")
    alternatives = request.get("firstAvailable")
    exactly = request.get("exactly")
    for index, alternative in list_mappings(alternatives):
        yield from _check_exact_request(alternative, (*path, "firstAvailable", index))
    if version == "v1beta1":
        if exactly is not None:
            yield Problem(
                (*path, "exactly"), "v1beta1 knows no exactly; set apiVersion: resource.k8s.io/v1"
            )
        elif alternatives is None:
            yield from _check_exact_request(request, path)
        return
    below = schema.types()["resource/v1.ExactDeviceRequest"]
    flat = [field for field in below if field in request]
    for field in flat:
        yield Problem(
            (*path, field),
            f"{field} directly in a request is v1beta1; in {version} write it below exactly",
        )
    if exactly is not None and alternatives is not None:
        yield Problem(path, "exactly and firstAvailable exclude each other; keep one")
    elif isinstance(exactly, dict):
        yield from _check_exact_request(exactly, (*path, "exactly"))
    elif alternatives is None and not flat:
        yield Problem(path, "a request needs exactly or firstAvailable")


def _check_exact_request(request: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    if not request.get("deviceClassName"):
        yield Problem(path, "deviceClassName is missing; name a DeviceClass")
    mode = request.get("allocationMode")
    if mode in ("WaitForFirstConsumer", "Immediate"):
        yield Problem(
            (*path, "allocationMode"),
            f"{mode} is gone since Kubernetes 1.31: devices are always allocated when the first"
            " pod is scheduled; remove it, or write ExactCount or All",
        )
    elif mode is not None and mode not in _MODES:
        yield Problem((*path, "allocationMode"), f"{mode!r} is not one of {', '.join(_MODES)}")
    elif mode == "All" and "count" in request:
        yield Problem((*path, "count"), "with allocationMode All there is no count; remove one")


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
    """Yield every pod spec in ``data``, which was found at ``path``."""
    for value_path, value in walk(data, path):
        containers = value.get("containers") if isinstance(value, dict) else None
        if isinstance(containers, list) and all(isinstance(item, dict) for item in containers):
            yield value_path, value


def check_pods(data: Any, path: PathTuple = ()) -> Iterator[Problem]:
    """Yield the problems of every pod spec in ``data``, which was found at ``path``."""
    for spec_path, spec in pod_specs(data, path):
        yield from _check_pod_spec(spec, spec_path)


def _check_pod_spec(spec: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    declared: list[str] = []
    claims = spec.get("resourceClaims")
    for index, claim in enumerate(claims if isinstance(claims, list) else []):
        claim_path = (*path, "resourceClaims", index)
        if not isinstance(claim, dict):
            yield Problem(claim_path, f"is not an object with a name and {' or '.join(SOURCES)}")
            continue
        name = as_text(claim.get("name"))
        if not name:
            yield Problem(
                claim_path, "a pod resource claim needs a name, which containers refer to"
            )
        elif name in declared:
            yield Problem((*claim_path, "name"), f"{name!r} is given twice; names must be unique")
        else:
            declared.append(name)
        yield from _check_claim_source(claim, claim_path)
    for kind in CONTAINERS:
        for index, container in list_mappings(spec.get(kind)):
            claim_path = (*path, kind, index, "resources", "claims")
            yield from _check_container_claims(
                as_mapping(container.get("resources")).get("claims"), claim_path, declared
            )


def _check_claim_source(claim: Mapping[str, Any], place: PathTuple) -> Iterator[Problem]:
    if "source" in claim:
        inside = claim["source"] if isinstance(claim["source"], dict) else {}
        fields = [field for field in SOURCES if field in inside] or list(SOURCES)
        yield Problem(
            (*place, "source"),
            "source is gone since Kubernetes 1.31; write"
            f" {' or '.join(fields)} directly beside name",
        )
        return
    fields_given = [field for field in SOURCES if claim.get(field) is not None]
    if not fields_given:
        yield Problem(
            place, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )
    elif len(fields_given) > 1:
        yield Problem(
            place,
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        )


def _check_container_claims(claims: Any, path: PathTuple, declared: list[str]) -> Iterator[Problem]:
    declared_text = f": {', '.join(declared)}" if declared else ", which is empty"
    for index, claim in enumerate(claims if isinstance(claims, list) else []):
        name = as_mapping(claim).get("name")
        if not name:
            yield Problem((*path, index), "needs the name of an entry of the pod's resourceClaims")
        elif name not in declared:
            says = f"{name!r} must be one of the names in the pod's resourceClaims{declared_text}"
            yield Problem((*path, index, "name"), says)
