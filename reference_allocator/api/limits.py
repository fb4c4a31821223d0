"""The API's limits on sizes: how many items a list may have, how long a text may be.

The API server enforces them and the allocator relies on that, so this is a step of its own, for
objects that come from elsewhere. Source: the constants of k8s.io/api/resource/v1 at 1.37 and
pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reference_allocator.api.reading import InputError, mapping

KINDS: Final = ("ResourceSlice", "ResourceClaim", "DeviceClass")
"""Kinds of objects that have limits."""

_NAME: Final = 63
_EXPRESSION: Final = 10 * 1024
_MAX_DEVICES: Final = 128
_MAX_DEVICES_ADVANCED: Final = 64
_MAX_ATTRIBUTES: Final = 32
_MAX_VALUES: Final = 48
_LISTS: Final = ("ints", "bools", "strings", "versions")

# Type -> field -> (most items, or bytes of a text; the type of the content). A type after {} is
# that of the values of a map, and the number after it the most bytes of a key.
_Fields = Mapping[str, tuple[int | None, str]]
_LIMITS: Final[Mapping[str, _Fields]] = {
    "ResourceSlice": {"spec": (None, "ResourceSliceSpec")},
    "ResourceSliceSpec": {
        "driver": (_NAME, ""),
        "pool": (None, "ResourcePool"),
        "devices": (_MAX_DEVICES, "Device"),
        "sharedCounters": (8, "CounterSet"),
    },
    "ResourcePool": {"name": (253, "")},
    "CounterSet": {"name": (_NAME, ""), "counters": (32, "{63}")},
    "Device": {
        "name": (_NAME, ""),
        "attributes": (None, "{96}DeviceAttribute"),
        "capacity": (None, "{96}DeviceCapacity"),
        "consumesCounters": (2, "DeviceCounterConsumption"),
        "taints": (16, ""),
        "bindingConditions": (4, ""),
        "bindingFailureConditions": (4, ""),
    },
    "DeviceAttribute": {
        "string": (64, ""),
        "version": (64, ""),
        "strings": (None, "64"),
        "versions": (None, "64"),
    },
    "DeviceCapacity": {"requestPolicy": (None, "CapacityRequestPolicy")},
    "CapacityRequestPolicy": {"validValues": (10, "")},
    "DeviceCounterConsumption": {
        "counterSet": (_NAME, ""),
        "counters": (32, "{63}"),
        "compatibilityGroups": (2, ""),
    },
    "DeviceClass": {"spec": (None, "DeviceClassSpec")},
    "DeviceClassSpec": {"selectors": (32, "DeviceSelector"), "config": (32, "Config")},
    "DeviceSelector": {"cel": (None, "Expression")},
    "Expression": {"expression": (_EXPRESSION, "")},
    "Config": {"requests": (32, ""), "opaque": (None, "OpaqueConfig")},
    "OpaqueConfig": {"driver": (_NAME, "")},
    "ResourceClaim": {
        "spec": (None, "ResourceClaimSpec"),
        "status": (None, "ResourceClaimStatus"),
    },
    "ResourceClaimSpec": {"devices": (None, "DeviceClaim")},
    "DeviceClaim": {
        "requests": (32, "DeviceRequest"),
        "constraints": (32, "DeviceConstraint"),
        "config": (32, "Config"),
    },
    "DeviceConstraint": {"requests": (32, "")},
    "DeviceRequest": {
        "name": (_NAME, ""),
        "exactly": (None, "RequestSpec"),
        "firstAvailable": (8, "RequestSpec"),
    },
    "RequestSpec": {
        "name": (_NAME, ""),
        "selectors": (32, "DeviceSelector"),
        "tolerations": (16, ""),
        "derivedAttributes": (32, "Expression"),
    },
    "ResourceClaimStatus": {
        "allocation": (None, "AllocationResult"),
        "reservedFor": (256, ""),
    },
    "AllocationResult": {"devices": (None, "DeviceAllocationResult")},
    "DeviceAllocationResult": {"results": (32, "DeviceResult"), "config": (64, "Config")},
    "DeviceResult": {
        "driver": (_NAME, ""),
        "pool": (253, ""),
        "device": (_NAME, ""),
        "tolerations": (16, ""),
        "bindingConditions": (4, ""),
        "bindingFailureConditions": (4, ""),
    },
}


def excesses(kind: str, value: object) -> Iterator[InputError]:
    """What of an object is larger than the API allows.

    Args:
        kind: one of `KINDS`, or a type that is part of one ("Device").
        value: a v1 object; parts that have not the form of the kind are passed over.

    Returns:
        One error for each excess, with its path; they are not raised.
    """
    if isinstance(value, Mapping):
        yield from _struct(value, kind)


def check_limits(kind: str, value: object) -> None:
    """Refuses an object that is larger than the API allows.

    Raises:
        InputError: it is no object, or has something too large; names the path of the first.
    """
    for error in excesses(kind, mapping(value)):
        raise error


def _struct(value: Mapping[str, Any], kind: str) -> Iterator[InputError]:
    for field, (most, content) in _LIMITS[kind].items():
        item = value.get(field)
        if item is None:
            continue
        if kind == "ResourceSliceSpec" and field == "devices" and _is_advanced(item):
            most = _MAX_DEVICES_ADVANCED
        for error in (*_size(item, most), *_content(item, content)):
            yield error.under(field)
    if kind == "Device":
        yield from _device(value)
    elif kind == "OpaqueConfig":
        size = len(json.dumps(value.get("parameters"), separators=(",", ":")).encode())
        if size > _EXPRESSION:
            yield _too_long(_EXPRESSION).under("parameters")


def _size(item: object, most: int | None) -> Iterator[InputError]:
    if most is None:
        return
    if isinstance(item, str):
        if len(item.encode(errors="surrogatepass")) > most:
            yield _too_long(most)
    elif isinstance(item, (list, tuple, Mapping)) and len(item) > most:
        yield InputError(f"too many: {len(item)}: must have at most {most} items")


def _content(item: object, content: str) -> Iterator[InputError]:
    if not content:
        return
    if content.isdigit():
        content, longest = "", int(content)
        texts = item if isinstance(item, (list, tuple)) else ()
        for index, text in enumerate(texts):
            for error in _size(text, longest):
                yield error.under(index)
        return
    if content.startswith("{"):
        number, _, content = content[1:].partition("}")
        for name, inner in item.items() if isinstance(item, Mapping) else ():
            for error in _size(name, int(number)):
                yield error.under(str(name)[:64])
            if content and isinstance(inner, Mapping):
                for error in _struct(inner, content):
                    yield error.under(name)
        return
    if isinstance(item, Mapping):
        yield from _struct(item, content)
    elif isinstance(item, (list, tuple)):
        for index, inner in enumerate(item):
            if isinstance(inner, Mapping):
                for error in _struct(inner, content):
                    yield error.under(index)


def _device(device: Mapping[str, Any]) -> Iterator[InputError]:
    attributes = device.get("attributes") or {}
    capacity = device.get("capacity") or {}
    if not isinstance(attributes, Mapping) or not isinstance(capacity, Mapping):
        return
    total = len(attributes) + len(capacity)
    if total > _MAX_ATTRIBUTES:
        yield InputError(
            f"{total}: the total number of attributes and capacities must not exceed "
            f"{_MAX_ATTRIBUTES}"
        )
    values = sum(_values(attribute) for attribute in attributes.values())
    if values > _MAX_VALUES:
        yield InputError(
            f"{values}: the total number of attribute values must not exceed {_MAX_VALUES}"
        )


def _values(attribute: object) -> int:
    if not isinstance(attribute, Mapping):
        return 0
    return sum(
        len(content) if isinstance(content, (list, tuple)) else 1
        for content in attribute.values()
        if content is not None
    )


def _is_advanced(devices: object) -> bool:
    """Whether taints, counters or lists are used, which makes devices more expensive."""
    if not isinstance(devices, (list, tuple)):
        return False
    return any(
        device.get("taints")
        or device.get("consumesCounters")
        or any(
            isinstance(attribute, Mapping) and any(attribute.get(name) for name in _LISTS)
            for attribute in (device.get("attributes") or {}).values()
        )
        for device in devices
        if isinstance(device, Mapping)
    )


def _too_long(most: int) -> InputError:
    return InputError(f"too long: may not be more than {most} bytes")
