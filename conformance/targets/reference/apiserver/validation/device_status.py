"""Checks of what a driver reports of a claim's devices in ``status.devices`` (KEP 4817).

Source: pkg/apis/resource/validation/validation.go, validateDeviceStatus and what it calls. Of
conditions only their number is checked.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from typing import Any, Final

from conformance.targets.reference.apiserver.validation import names
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    invalid,
    too_long,
    too_many,
    unique,
)
from conformance.targets.seam.values import Obj

_CONDITIONS_MAX: Final = 8
_DATA_MAX: Final = 10 * 1024
_IPS_MAX: Final = 16
_INTERFACE_NAME_MAX: Final = 256
_HARDWARE_ADDRESS_MAX: Final = 128
_NO_LIMIT: Final = 1 << 31


def check_devices(status: Obj) -> Iterator[FieldError]:
    """``status.devices`` of a claim's status."""
    allocation = status.get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or []
    allocated = {_key(result) for result in results}

    def check(device: Obj, path: str) -> Iterator[FieldError]:
        yield from names.driver(device.get("driver") or "", f"{path}.driver")
        yield from names.pool(device.get("pool") or "", f"{path}.pool")
        yield from names.label(device.get("device") or "", f"{path}.device")
        if _key(device) not in allocated:
            yield invalid(path, _key(device), "must be an allocated device in the claim")
        conditions = device.get("conditions") or []
        if len(conditions) > _CONDITIONS_MAX:
            yield too_many(f"{path}.conditions", len(conditions), _CONDITIONS_MAX)
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
