"""The defaults that the API server fills in before it stores an object.

The allocator does none of this (upstream's does not either: an empty allocationMode is an error
there), so whoever makes up objects has to. Source: pkg/apis/resource/v1/defaults.go and the
`+default` markers of k8s.io/api/resource/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def default_claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    """Return a v1 ResourceClaim with defaults filled in; other parts are shared, not copied."""
    return {**claim, "spec": default_claim_spec(claim.get("spec") or {})}


def default_slice(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a v1 ResourceSlice with the fields that Go writes though nobody has set them."""
    spec = item.get("spec")
    if not isinstance(spec, Mapping) or not isinstance(spec.get("pool"), Mapping):
        return dict(item)
    return {**item, "spec": {**spec, "pool": {"generation": 0, **spec["pool"]}}}


def default_claim_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a v1 ResourceClaimSpec, as claim templates have one, with defaults filled in."""
    devices = spec.get("devices")
    if not isinstance(devices, Mapping) or not isinstance(devices.get("requests"), list):
        return dict(spec)
    requests = [_default_request(request) for request in devices["requests"]]
    return {**spec, "devices": {**devices, "requests": requests}}


def _default_request(request: Any) -> Any:
    if not isinstance(request, Mapping):
        return request
    defaulted = dict(request)
    if isinstance(request.get("exactly"), Mapping):
        defaulted["exactly"] = _default_request_spec(request["exactly"])
    if isinstance(request.get("firstAvailable"), list):
        defaulted["firstAvailable"] = [
            _default_request_spec(item) for item in request["firstAvailable"]
        ]
    return defaulted


def _default_request_spec(spec: Any) -> Any:
    if not isinstance(spec, Mapping):
        return spec
    defaulted = dict(spec)
    if not defaulted.get("allocationMode"):
        defaulted["allocationMode"] = "ExactCount"
    if defaulted["allocationMode"] == "ExactCount" and not defaulted.get("count"):
        defaulted["count"] = 1
    if isinstance(defaulted.get("tolerations"), list):
        defaulted["tolerations"] = [_default_toleration(item) for item in defaulted["tolerations"]]
    return defaulted


def _default_toleration(toleration: Any) -> Any:
    if not isinstance(toleration, Mapping) or toleration.get("operator"):
        return toleration
    return {**toleration, "operator": "Equal"}
