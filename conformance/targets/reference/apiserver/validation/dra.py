"""Checks of the resource.k8s.io kinds other than the requests in a claim.

Source: pkg/apis/resource/validation/validation.go and pkg/registry/resource (admin access).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.targets.reference.apiserver.validation import device_requests, names
from conformance.targets.reference.apiserver.validation.allocation import (
    ADMIN_LABEL,
    admin_refusal,
    check_allocation,
)
from conformance.targets.reference.apiserver.validation.conditions import check_conditions
from conformance.targets.reference.apiserver.validation.constraints import Expressions
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    each,
    forbidden,
    invalid,
    required,
    too_long,
    unique,
)
from conformance.targets.seam.values import Obj
from reference_allocator.api.limits import CONFIGS_MAX, RESERVED_FOR_MAX
from reference_allocator.api.names import label_key_problems

Labels = Mapping[str, str]


def check_claim(
    claim: Obj, namespace_labels: Labels, expressions: Expressions
) -> Iterator[FieldError]:
    """A new ResourceClaim, in a namespace with these labels."""
    spec = claim.get("spec") or {}
    yield from device_requests.check_claim_spec(spec, "spec", expressions)
    yield from _admin_access(spec, namespace_labels)


def check_template(
    template: Obj, namespace_labels: Labels, expressions: Expressions
) -> Iterator[FieldError]:
    spec = template.get("spec") or {}
    meta = spec.get("metadata") or {}
    yield from names.labels(meta.get("labels") or {}, "spec.metadata.labels")
    for field in sorted(meta.keys() - {"annotations", "labels"}):
        yield forbidden(f"spec.metadata.{field}", "cannot be set")
    inner = spec.get("spec") or {}
    yield from device_requests.check_claim_spec(inner, "spec.spec", expressions)
    yield from _admin_access(inner, namespace_labels)


def check_immutable_spec(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Specs of claims and claim templates never change."""
    if new.get("spec") != old.get("spec"):
        yield invalid("spec", None, "field is immutable")


def check_status(new: Obj, old: Obj) -> Iterator[FieldError]:
    """A change of a claim's status: reservations need an allocation, which never changes."""
    status, before = new.get("status") or {}, old.get("status") or {}
    users = status.get("reservedFor") or []
    yield from unique(
        users, RESERVED_FOR_MAX, _user, lambda user: str(user.get("uid")), "status.reservedFor"
    )
    yield from check_devices(status)
    if users and status.get("allocation") is None:
        detail = "may not be specified when `allocated` is not set"
        yield forbidden("status.reservedFor", detail)
    elif "deletionTimestamp" in new["metadata"]:
        known = before.get("reservedFor") or []
        if any(user not in known for user in users):
            yield forbidden(
                "status.reservedFor",
                "new entries may not be added while `deallocationRequested` or "
                "`deletionTimestamp` are set",
            )
    allocations = [status.get("allocation"), before.get("allocation")]
    if None not in allocations and allocations[0] != allocations[1]:
        yield invalid("status.allocation", None, "field cannot be modified once set")
    elif allocations[0] is not None and allocations[1] is None:
        yield from check_allocation(new)


def _user(user: Obj, path: str) -> Iterator[FieldError]:
    for field in ("resource", "name", "uid"):
        if not user.get(field):
            yield required(f"{path}.{field}")


def check_class(
    device_class: Obj, old: Obj | None, expressions: Expressions
) -> Iterator[FieldError]:
    """A new DeviceClass, or one that was changed; selectors that stayed are not looked into."""
    spec = device_class.get("spec") or {}
    found = spec.get("selectors") or []
    stored = old is not None and found == ((old.get("spec") or {}).get("selectors") or [])
    checked = None if stored else expressions
    yield from device_requests.selectors(found, "spec.selectors", checked)
    yield from each(
        spec.get("config") or [], CONFIGS_MAX, device_requests.device_config, "spec.config"
    )
    extended = spec.get("extendedResourceName")
    if extended is not None:
        for problem in _extended_resource_problems(extended):
            yield invalid("spec.extendedResourceName", extended, problem)


def _extended_resource_problems(name: str) -> Iterator[str]:
    """ExtendedResourceName in k8s.io/apimachinery/pkg/api/validate/strfmt.go."""
    if "/" not in name:
        yield "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
    elif "kubernetes.io/" in name:
        yield 'must not have "kubernetes.io/" domain'
    if name.startswith("requests."):
        yield 'must not have "requests." prefix'
    yield from label_key_problems(f"requests.{name}")


def _admin_access(spec: Obj, namespace_labels: Labels) -> Iterator[FieldError]:
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or []):
        if not (request.get("exactly") or {}).get("adminAccess"):
            continue
        if namespace_labels.get(ADMIN_LABEL) != "true":
            # The path lacks "exactly" (and a template's second "spec") upstream, too.
            yield admin_refusal(f"spec.devices.requests[{index}].adminAccess")
        return


_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DATA_MAX: Final = 10 * 1024
_IPS_MAX: Final = 16
_INTERFACE_NAME_MAX: Final = 256
_HARDWARE_ADDRESS_MAX: Final = 128
_NO_LIMIT: Final = 1 << 31


def check_devices(status: Obj) -> Iterator[FieldError]:
    allocation = status.get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or []
    allocated = {_key(result) for result in results}

    def check(device: Obj, path: str) -> Iterator[FieldError]:
        yield from names.driver(device.get("driver") or "", f"{path}.driver")
        yield from names.pool(device.get("pool") or "", f"{path}.pool")
        yield from names.label(device.get("device") or "", f"{path}.device")
        if device.get("shareID") is not None and not _UUID.fullmatch(device["shareID"]):
            detail = "must be a lowercase UUID in 8-4-4-4-12 format"
            yield invalid(f"{path}.shareID", device["shareID"], detail)
        if _key(device) not in allocated:
            yield invalid(path, _key(device), "must be an allocated device in the claim")
        yield from check_conditions(device.get("conditions") or [], f"{path}.conditions")
        if device.get("data") is not None:
            yield from _data(device["data"], f"{path}.data")
        yield from _network(device.get("networkData") or {}, f"{path}.networkData")

    yield from unique(status.get("devices") or [], _NO_LIMIT, check, _key, "status.devices")


def _key(device: Obj) -> str:
    parts = (device.get(part) or "" for part in ("driver", "pool", "device", "shareID"))
    return "/".join(parts).rstrip("/")


def _data(data: Any, path: str) -> Iterator[FieldError]:
    if len(json.dumps(data, separators=(",", ":")).encode()) > _DATA_MAX:
        yield too_long(path, _DATA_MAX)
    elif not isinstance(data, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")


def _network(data: Obj, path: str) -> Iterator[FieldError]:
    for field, limit in (
        ("interfaceName", _INTERFACE_NAME_MAX),
        ("hardwareAddress", _HARDWARE_ADDRESS_MAX),
    ):
        if len((data.get(field) or "").encode()) > limit:
            yield too_long(f"{path}.{field}", limit)
    yield from unique(data.get("ips") or [], _IPS_MAX, _address, str, f"{path}.ips")


def _address(address: str, path: str) -> Iterator[FieldError]:
    try:
        known = "/" in address and str(ipaddress.ip_interface(address)) == address
    except ValueError:
        known = False
    if not known:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid(path, address, detail)
