"""The API's limits on sizes: how many items a list may have, how long a text may be.

The API server enforces them and the allocator relies on that, so this is a step of its own, for
objects that come from elsewhere. Source: the constants of k8s.io/api/resource/v1 at 1.37 and
pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reference_allocator.api.names import DNS_LABEL_MAX
from reference_allocator.api.reading import InputError, mapping

KINDS: Final = ("ResourceSlice", "ResourceClaim", "DeviceClass")
"""Kinds of objects that have limits."""

DRIVER_NAME_MAX: Final = 63
POOL_NAME_MAX: Final = 253
ATTRIBUTE_DOMAIN_MAX: Final = 63
ATTRIBUTE_ID_MAX: Final = 32
"""Of the name of an attribute or a capacity without its domain (DeviceMaxIDLength)."""
ATTRIBUTE_VALUE_MAX: Final = 64
"""Of one string or version (DeviceAttributeMaxValueLength), in bytes."""
ATTRIBUTE_VALUES_MAX: Final = 48
"""Of all attributes of a device together."""
ATTRIBUTES_AND_CAPACITIES_MAX: Final = 32
COUNTER_SETS_MAX: Final = 8
COUNTERS_MAX: Final = 32
"""Of one counter set, and of one consumption."""
CONSUMES_COUNTERS_MAX: Final = 2
TAINTS_MAX: Final = 16
SELECTORS_MAX: Final = 32
"""Of a class, and of a request."""
REQUESTS_MAX: Final = 32
FIRST_AVAILABLE_MAX: Final = 8
CONSTRAINTS_MAX: Final = 32
CONFIGS_MAX: Final = 32
"""Of a class, and of a claim; an allocation has those of both."""
RESERVED_FOR_MAX: Final = 256
CEL_EXPRESSION_MAX: Final = 10 * 1024
OPAQUE_PARAMETERS_MAX: Final = 10 * 1024
ALLOCATION_RESULTS_MAX: Final = 32
"""How many devices one claim can get."""

_DEVICES_MAX: Final = 128
_ADVANCED_DEVICES_MAX: Final = 64
_NAME: Final = DNS_LABEL_MAX
_ATTRIBUTE: Final = ATTRIBUTE_DOMAIN_MAX + 1 + ATTRIBUTE_ID_MAX
_LISTS: Final = ("ints", "bools", "strings", "versions")

# Type -> field -> (most items, or bytes of a text; the type of the content). A type after {} is
# that of the values of a map, and the number after it the most bytes of a key.
_Fields = Mapping[str, tuple[int | None, str]]
_LIMITS: Final[Mapping[str, _Fields]] = {
    "ResourceSlice": {"spec": (None, "ResourceSliceSpec")},
    "ResourceSliceSpec": {
        "driver": (DRIVER_NAME_MAX, ""),
        "pool": (None, "ResourcePool"),
        "devices": (None, "Device"),
        "sharedCounters": (COUNTER_SETS_MAX, "CounterSet"),
    },
    "ResourcePool": {"name": (POOL_NAME_MAX, "")},
    "CounterSet": {"name": (_NAME, ""), "counters": (COUNTERS_MAX, f"{{{_NAME}}}")},
    "Device": {
        "name": (_NAME, ""),
        "attributes": (None, f"{{{_ATTRIBUTE}}}DeviceAttribute"),
        "capacity": (None, f"{{{_ATTRIBUTE}}}DeviceCapacity"),
        "consumesCounters": (CONSUMES_COUNTERS_MAX, "DeviceCounterConsumption"),
        "taints": (TAINTS_MAX, ""),
        "bindingConditions": (4, ""),
        "bindingFailureConditions": (4, ""),
    },
    "DeviceAttribute": {
        "string": (ATTRIBUTE_VALUE_MAX, ""),
        "version": (ATTRIBUTE_VALUE_MAX, ""),
        "strings": (None, str(ATTRIBUTE_VALUE_MAX)),
        "versions": (None, str(ATTRIBUTE_VALUE_MAX)),
    },
    "DeviceCapacity": {"requestPolicy": (None, "CapacityRequestPolicy")},
    "CapacityRequestPolicy": {"validValues": (10, "")},
    "DeviceCounterConsumption": {
        "counterSet": (_NAME, ""),
        "counters": (COUNTERS_MAX, f"{{{_NAME}}}"),
        "compatibilityGroups": (2, ""),
    },
    "DeviceClass": {"spec": (None, "DeviceClassSpec")},
    "DeviceClassSpec": {
        "selectors": (SELECTORS_MAX, "DeviceSelector"),
        "config": (CONFIGS_MAX, "Config"),
    },
    "DeviceSelector": {"cel": (None, "Expression")},
    "Expression": {"expression": (CEL_EXPRESSION_MAX, "")},
    "Config": {"requests": (REQUESTS_MAX, ""), "opaque": (None, "OpaqueConfig")},
    "OpaqueConfig": {"driver": (DRIVER_NAME_MAX, "")},
    "ResourceClaim": {
        "spec": (None, "ResourceClaimSpec"),
        "status": (None, "ResourceClaimStatus"),
    },
    "ResourceClaimSpec": {"devices": (None, "DeviceClaim")},
    "DeviceClaim": {
        "requests": (REQUESTS_MAX, "DeviceRequest"),
        "constraints": (CONSTRAINTS_MAX, "DeviceConstraint"),
        "config": (CONFIGS_MAX, "Config"),
    },
    "DeviceConstraint": {"requests": (REQUESTS_MAX, "")},
    "DeviceRequest": {
        "name": (_NAME, ""),
        "exactly": (None, "RequestSpec"),
        "firstAvailable": (FIRST_AVAILABLE_MAX, "RequestSpec"),
    },
    "RequestSpec": {
        "name": (_NAME, ""),
        "selectors": (SELECTORS_MAX, "DeviceSelector"),
        "tolerations": (16, ""),
        "derivedAttributes": (32, "Expression"),
    },
    "ResourceClaimStatus": {
        "allocation": (None, "AllocationResult"),
        "reservedFor": (RESERVED_FOR_MAX, ""),
    },
    "AllocationResult": {"devices": (None, "DeviceAllocationResult")},
    "DeviceAllocationResult": {
        "results": (ALLOCATION_RESULTS_MAX, "DeviceResult"),
        "config": (2 * CONFIGS_MAX, "Config"),
    },
    "DeviceResult": {
        "driver": (DRIVER_NAME_MAX, ""),
        "pool": (POOL_NAME_MAX, ""),
        "device": (_NAME, ""),
        "tolerations": (16, ""),
        "bindingConditions": (4, ""),
        "bindingFailureConditions": (4, ""),
    },
}


def check_limits(kind: str, value: object) -> None:
    """Refuses an object that is larger than the API allows.

    Args:
        kind: one of `KINDS`, or a type that is part of one ("Device").
        value: a v1 object; parts that have not the form of the kind are passed over.

    Raises:
        InputError: it is no object, or has something too large; names the path of the first.
    """
    for error in _struct(mapping(value), kind):
        raise error


def devices_max(devices: object) -> int:
    """How many devices a slice may have: fewer if one has taints, counters or lists.

    Args:
        devices: `spec.devices` of a v1 ResourceSlice; items of another form are passed over.
    """
    return _ADVANCED_DEVICES_MAX if _is_advanced(devices) else _DEVICES_MAX


def _struct(value: Mapping[str, Any], kind: str) -> Iterator[InputError]:
    for field, (most, content) in _LIMITS[kind].items():
        item = value.get(field)
        if item is None:
            continue
        if kind == "ResourceSliceSpec" and field == "devices":
            most = devices_max(item)
        for error in (*_size(item, most), *_content(item, content)):
            yield error.under(field)
    if kind == "Device":
        yield from _device(value)
    elif kind == "OpaqueConfig":
        size = len(json.dumps(value.get("parameters"), separators=(",", ":")).encode())
        if size > OPAQUE_PARAMETERS_MAX:
            yield _too_long(OPAQUE_PARAMETERS_MAX).under("parameters")


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
    if total > ATTRIBUTES_AND_CAPACITIES_MAX:
        yield InputError(
            f"{total}: the total number of attributes and capacities must not exceed "
            f"{ATTRIBUTES_AND_CAPACITIES_MAX}"
        )
    values = sum(_values(attribute) for attribute in attributes.values())
    if values > ATTRIBUTE_VALUES_MAX:
        yield InputError(
            f"{values}: the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"
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
    if not isinstance(devices, (list, tuple)):
        return False
    return any(
        device.get("taints") or device.get("consumesCounters") or _has_lists(device)
        for device in devices
        if isinstance(device, Mapping)
    )


def _has_lists(device: Mapping[str, Any]) -> bool:
    attributes = device.get("attributes")
    return isinstance(attributes, Mapping) and any(
        attribute.get(name) is not None
        for attribute in attributes.values()
        if isinstance(attribute, Mapping)
        for name in _LISTS
    )


def _too_long(most: int) -> InputError:
    return InputError(f"too long: may not be more than {most} bytes")
