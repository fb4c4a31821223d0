"""The API's limits on sizes: how many items a list may have, how long a text may be.

The API server enforces them and the allocator relies on that, so this is a step of its own, for
objects that come from elsewhere. Source: the constants of k8s.io/api/resource/v1 at 1.37 and
pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeGuard

from reference_allocator.api.names import DNS_LABEL_MAX
from reference_allocator.api.reading import InputError, expect_object
from reference_allocator.api.schema import LIST, MAP, types

KINDS: Final = ("ResourceSlice", "ResourceClaim", "DeviceClass")
"""Kinds of objects that have limits."""

DRIVER_NAME_MAX: Final = 63
POOL_NAME_MAX: Final = 253
ATTRIBUTE_DOMAIN_MAX: Final = 63
ATTRIBUTE_ID_MAX: Final = 32
"""The most bytes of the name of an attribute or capacity without its domain (DeviceMaxIDLength)."""
ATTRIBUTE_VALUE_MAX: Final = 64
"""The most bytes of one string or version (DeviceAttributeMaxValueLength)."""
ATTRIBUTE_VALUES_MAX: Final = 48
"""The most values that all attributes of a device have together."""
ATTRIBUTES_AND_CAPACITIES_MAX: Final = 32
COUNTER_SETS_MAX: Final = 8
COUNTERS_MAX: Final = 32
"""The most counters of one counter set, and of one consumption."""
CONSUMES_COUNTERS_MAX: Final = 2
TAINTS_MAX: Final = 16
SELECTORS_MAX: Final = 32
"""The most selectors of a class, and of a request."""
REQUESTS_MAX: Final = 32
FIRST_AVAILABLE_MAX: Final = 8
DERIVED_ATTRIBUTES_MAX: Final = 32
CONSTRAINTS_MAX: Final = 32
CONFIGS_MAX: Final = 32
"""The most configurations of a class, and of a claim; an allocation has those of both."""
RESERVED_FOR_MAX: Final = 256
CEL_EXPRESSION_MAX: Final = 10 * 1024
OPAQUE_PARAMETERS_MAX: Final = 10 * 1024
ALLOCATION_RESULTS_MAX: Final = 32
"""The most devices that one claim can get."""

_DEVICES_MAX: Final = 128
_ADVANCED_DEVICES_MAX: Final = 64
_NAME: Final = DNS_LABEL_MAX
_ATTRIBUTE: Final = ATTRIBUTE_DOMAIN_MAX + 1 + ATTRIBUTE_ID_MAX
_LISTS: Final = frozenset({"ints", "bools", "strings", "versions"})
_BOUND: Final = {"bindingConditions": 4, "bindingFailureConditions": 4}
_REQUEST: Final = {
    "selectors": SELECTORS_MAX,
    "tolerations": 16,
    "derivedAttributes": DERIVED_ATTRIBUTES_MAX,
}
_MOST_ITEMS: Final[Mapping[str, Mapping[str, int]]] = {
    "CELDeviceSelector": {"expression": CEL_EXPRESSION_MAX},
    "CapacityRequestPolicy": {"validValues": 10},
    "CounterSet": {"name": _NAME, "counters": COUNTERS_MAX},
    "Device": {
        "name": _NAME,
        "consumesCounters": CONSUMES_COUNTERS_MAX,
        "taints": TAINTS_MAX,
        **_BOUND,
    },
    "DeviceAllocationConfiguration": {"requests": REQUESTS_MAX},
    "DeviceAllocationResult": {"results": ALLOCATION_RESULTS_MAX, "config": 2 * CONFIGS_MAX},
    "DeviceAttribute": {"string": ATTRIBUTE_VALUE_MAX, "version": ATTRIBUTE_VALUE_MAX},
    "DeviceClaim": {
        "requests": REQUESTS_MAX,
        "constraints": CONSTRAINTS_MAX,
        "config": CONFIGS_MAX,
    },
    "DeviceClaimConfiguration": {"requests": REQUESTS_MAX},
    "DeviceClassSpec": {"selectors": SELECTORS_MAX, "config": CONFIGS_MAX},
    "DeviceConstraint": {"requests": REQUESTS_MAX},
    "DeviceCounterConsumption": {
        "counterSet": _NAME,
        "counters": COUNTERS_MAX,
        "compatibilityGroups": 2,
    },
    "DeviceDerivedAttribute": {"expression": CEL_EXPRESSION_MAX},
    "DeviceRequest": {"name": _NAME, "firstAvailable": FIRST_AVAILABLE_MAX},
    "DeviceRequestAllocationResult": {
        "driver": DRIVER_NAME_MAX,
        "pool": POOL_NAME_MAX,
        "device": _NAME,
        "tolerations": 16,
        **_BOUND,
    },
    "DeviceSubRequest": {"name": _NAME, **_REQUEST},
    "ExactDeviceRequest": _REQUEST,
    "OpaqueDeviceConfiguration": {"driver": DRIVER_NAME_MAX},
    "ResourceClaimStatus": {"reservedFor": RESERVED_FOR_MAX},
    "ResourcePool": {"name": POOL_NAME_MAX},
    "ResourceSliceSpec": {"driver": DRIVER_NAME_MAX, "sharedCounters": COUNTER_SETS_MAX},
}
"""Type -> field -> the most items of a list or map, or bytes of a text."""
_MOST_EACH: Final[Mapping[tuple[str, str], int]] = {
    ("CounterSet", "counters"): _NAME,
    ("Device", "attributes"): _ATTRIBUTE,
    ("Device", "capacity"): _ATTRIBUTE,
    ("DeviceAttribute", "strings"): ATTRIBUTE_VALUE_MAX,
    ("DeviceAttribute", "versions"): ATTRIBUTE_VALUE_MAX,
    ("DeviceCounterConsumption", "counters"): _NAME,
}
"""Type and field -> the most bytes of each text in a list, or of each name in a map."""


def check_limits(kind: str, value: object) -> None:
    """Raise InputError if an object is larger than the API allows.

    Args:
        kind: one of `KINDS`, or a type that is part of one ("Device").
        value: a v1 object; parts that have not the form of the kind are passed over.

    Raises InputError: the value is no object, or has something too large; names the path of the
    first.
    """
    for error in _find_problems(expect_object(value), f"resource/v1.{kind}"):
        raise error


def devices_max(devices: object) -> int:
    """Return how many devices a slice may have: fewer if one has taints, counters or lists.

    ``devices``: `spec.devices` of a v1 ResourceSlice; items of another form are passed over.
    """
    return _ADVANCED_DEVICES_MAX if _is_advanced(devices) else _DEVICES_MAX


def _find_problems(
    value: object, shape: str, most: int | None = None, most_each: int | None = None
) -> Iterator[InputError]:
    """Yield an error for all that is too large in a value.

    Args:
        value: decoded JSON; a value that has not the shape has no parts.
        shape: a shape of `reference_allocator.api.schema`.
        most: how many items, or bytes, the value may have.
        most_each: how many bytes each of its items, or of its names, may have.
    """
    if isinstance(value, str):
        if most is not None and _size(value) > most:
            yield _too_long(most)
        return
    if most is not None and isinstance(value, (list, tuple, Mapping)) and len(value) > most:
        yield InputError(f"too many: {len(value)}: must have at most {most} items")
    if shape.startswith(LIST) and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            for error in _find_problems(item, shape[len(LIST) :], most_each):
                yield error.with_parent(index)
    elif shape.startswith(MAP) and isinstance(value, Mapping):
        for name, item in value.items():
            if most_each is not None and _size(name) > most_each:
                yield _too_long(most_each).with_parent(name[:64])
            for error in _find_problems(item, shape[len(MAP) :]):
                yield error.with_parent(name)
    elif shape in types() and isinstance(value, Mapping):
        yield from _struct_problems(value, shape)


def _struct_problems(value: Mapping[str, Any], shape: str) -> Iterator[InputError]:
    kind, limits = shape.rpartition(".")[2], _limits_of_fields(shape)
    for field, item in value.items():
        if item is not None and field in limits:
            inner, most, most_each = limits[field]
            if kind == "ResourceSliceSpec" and field == "devices":
                most = devices_max(item)
            for error in _find_problems(item, inner, most, most_each):
                yield error.with_parent(field)
    if kind == "Device":
        yield from _device_problems(value)
    elif kind == "OpaqueDeviceConfiguration":
        size = len(json.dumps(value.get("parameters"), separators=(",", ":")).encode())
        if size > OPAQUE_PARAMETERS_MAX:
            yield _too_long(OPAQUE_PARAMETERS_MAX).with_parent("parameters")


@cache
def _limits_of_fields(shape: str) -> Mapping[str, tuple[str, int | None, int | None]]:
    """Return field -> (shape, most, most_each), for fields that have limits or contain some."""
    kind = shape.rpartition(".")[2]
    limited_fields = {}
    for field, inner in types().get(shape, {}).items():
        most, most_each = _MOST_ITEMS.get(kind, {}).get(field), _MOST_EACH.get((kind, field))
        if most or most_each or _limits_of_fields(inner.removeprefix(LIST).removeprefix(MAP)):
            limited_fields[field] = inner, most, most_each
    return limited_fields


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _device_problems(device: Mapping[str, Any]) -> Iterator[InputError]:
    attributes = device.get("attributes") or {}
    capacity = device.get("capacity") or {}
    if not isinstance(attributes, Mapping) or not isinstance(capacity, Mapping):
        return
    total = len(attributes) + len(capacity)
    if total > ATTRIBUTES_AND_CAPACITIES_MAX:
        yield InputError(
            f"{total}: the total number of attributes and capacities must not exceed "
            f"{ATTRIBUTES_AND_CAPACITIES_MAX}"
        )
    values = attribute_values(attributes)
    if values > ATTRIBUTE_VALUES_MAX:
        yield InputError(
            f"{values}: the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"
        )


def attribute_values(attributes: Mapping[str, object]) -> int:
    """Count the values that the attributes of a device have, items of lists one by one."""
    return sum(_count_values(attribute) for attribute in attributes.values())


def _count_values(attribute: object) -> int:
    if not _is_mapping(attribute):
        return 0
    values = 0
    for content in attribute.values():
        if content is not None:
            values += len(content) if isinstance(content, (list, tuple)) else 1
    return values


def _is_advanced(devices: object) -> bool:
    if not isinstance(devices, (list, tuple)):
        return False
    return any(
        device.get("taints") or device.get("consumesCounters") or _has_lists(device)
        for device in devices
        if _is_mapping(device)
    )


def _has_lists(device: Mapping[str, Any]) -> bool:
    attributes = device.get("attributes")
    return _is_mapping(attributes) and any(
        attribute[name] is not None
        for attribute in attributes.values()
        if _is_mapping(attribute)
        for name in _LISTS.intersection(attribute)
    )


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    # Asking for the class first: the abstract one takes longer.
    return value.__class__ is dict or isinstance(value, Mapping)


def _too_long(most: int) -> InputError:
    return InputError(f"too long: may not be more than {most} bytes")
