"""resource.k8s.io between its served versions: stored once, as v1, returned as asked.

v1beta2 and v1 have the same shape. v1beta1 differs in two places (staging/src/k8s.io/api/resource/
v1beta1/types.go): a request carries the fields of ``exactly`` itself, and a device of a slice has
everything but its name below ``basic``.
"""

from __future__ import annotations

from typing import Any

from kube.values import Obj
from kubesim.resources import DRA_GROUP, KINDS
from kubesim.store import clone
from reference_allocator.api.schema import types

_EXACTLY = "resource/v1.ExactDeviceRequest"
_FLAT = f"{DRA_GROUP}/v1beta1"
_LOST_OF_DEVICE = frozenset({"attributes", "capacity", "consumesCounters", "taints"})
_LOST_OF_REQUEST = frozenset({"tolerations"})
"""Lists and maps that are none after a conversion from or to v1beta1 if they are empty."""


def to_storage(obj: Obj) -> None:
    """Change a decoded object to the version that the store keeps, in place."""
    if obj["apiVersion"] == _FLAT:
        for request in device_requests(obj):
            exactly = {name: request.pop(name) for name in types()[_EXACTLY] if name in request}
            if exactly.get("deviceClassName") == "":  # which Go cannot tell from none
                del exactly["deviceClassName"]
            if exactly:  # also if all that there is of it is an empty list, which then goes
                request["exactly"] = _without_empty(exactly, _LOST_OF_REQUEST)
        for device in list_devices(obj):
            device.update(_without_empty(device.pop("basic", None) or {}, _LOST_OF_DEVICE))
    obj["apiVersion"] = KINDS[obj["kind"]].api_version


def to_version(obj: Obj, api_version: str) -> Obj:
    """Return a copy of a stored object in a served version."""
    new = clone(obj)
    new["apiVersion"] = api_version
    if api_version == _FLAT:
        for request in device_requests(new):
            request.update(_without_empty(request.pop("exactly", None) or {}, _LOST_OF_REQUEST))
        for device in list_devices(new):
            basic = {name: device.pop(name) for name in list(device) if name != "name"}
            device["basic"] = _without_empty(basic, _LOST_OF_DEVICE)
    return new


def _without_empty(fields: Obj, lost: frozenset[str]) -> Obj:
    return {name: item for name, item in fields.items() if item or name not in lost}


def as_version(obj: Obj, api_version: str) -> Obj:
    """Return a stored object in a served version, to be read alone: it may be the stored one."""
    if obj["apiVersion"] == api_version:
        return obj
    return {**obj, "apiVersion": api_version} if api_version != _FLAT else to_version(obj, _FLAT)


def claim_devices(obj: Obj) -> Obj:
    """Return ``spec.devices`` of a claim or claim template, empty for any other kind."""
    if obj["kind"] not in {"ResourceClaim", "ResourceClaimTemplate"}:
        return {}
    spec = obj.get("spec") or {}
    if obj["kind"] == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    return spec.get("devices") or {}


def device_requests(obj: Obj) -> list[Any]:
    """Return the requests of a claim or claim template, empty for any other kind."""
    return claim_devices(obj).get("requests") or []


def list_devices(obj: Obj) -> list[Any]:
    """Return the devices of a slice, empty for any other kind."""
    if obj["kind"] != "ResourceSlice":
        return []
    return (obj.get("spec") or {}).get("devices") or []
