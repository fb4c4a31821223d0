"""What a pod's status says of its claims.

Sources: validatePodResourceClaimStatuses and validatePodExtendedResourceClaimStatus in
pkg/apis/core/validation/validation.go; ``podStatusStrategy.PrepareForUpdate`` in
pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from conformance.targets.reference.apiserver.validation import names
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    duplicate,
    invalid,
    required,
)
from conformance.targets.seam.values import Obj

_KEPT: Final = (
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
)


def keep_claims(new: Obj, old: Obj) -> None:
    """Keep what a client left out that may not know of it, in place; an empty list clears it."""
    for field in _KEPT:
        if field in old["status"]:
            new["status"].setdefault(field, old["status"][field])


def check_pod_status(pod: Obj) -> Iterator[FieldError]:
    """A changed status of a pod, as far as it is about claims."""
    spec, status = pod["spec"], pod["status"]
    entries = {claim["name"] for claim in spec.get("resourceClaims") or []}
    seen: set[str] = set()
    for index, told in enumerate(status.get("resourceClaimStatuses") or []):
        path, name = f"status.resourceClaimStatuses[{index}]", told.get("name") or ""
        if name not in entries:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{path}.name", name, detail)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        if told.get("resourceClaimName") is not None:
            yield from names.subdomain(told["resourceClaimName"], f"{path}.resourceClaimName")
    if status.get("extendedResourceClaimStatus") is not None:
        told = status["extendedResourceClaimStatus"]
        yield from _extended(told, spec, "status.extendedResourceClaimStatus")


def _extended(told: Obj, spec: Obj, path: str) -> Iterator[FieldError]:
    requests: Mapping[str, Obj] = {
        container["name"]: (container.get("resources") or {}).get("requests") or {}
        for field in ("initContainers", "containers")
        for container in spec.get(field) or []
    }
    mappings = told.get("requestMappings") or []
    if not mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    seen = []
    for index, mapping in enumerate(mappings):
        inner = f"{path}.requestMappings[{index}]"
        key = [mapping.get(f) or "" for f in ("containerName", "resourceName", "requestName")]
        container, resource, request = key
        both = "spec.initContainers{0} or spec.containers{0}"
        if container not in requests:
            detail = f"must match the name of an entry in {both.format('.name')}"
            yield invalid(f"{inner}.containerName", container, detail)
        elif resource not in requests[container]:
            entry = both.format(".resources.requests")
            detail = f"must match the extended resource name of an entry in {entry}"
            yield invalid(f"{inner}.resourceName", resource, detail)
        yield from names.label(request, f"{path}.requestName")
        if key in seen:
            for field, value in zip(("container", "resource", "request"), key, strict=True):
                yield duplicate(f"{inner}.{field}Name", value)
        seen.append(key)
    if not told.get("resourceClaimName"):
        yield required(f"{path}.resourceClaimName")
    else:
        yield from names.subdomain(told["resourceClaimName"], f"{path}.resourceClaimName")
