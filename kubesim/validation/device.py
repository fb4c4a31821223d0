"""Checks of one device of a slice: attributes, capacity, counters, taints, node, conditions.

Source: ``validateDevice`` in pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from kube.values import Obj
from kubesim.goforms import show_internal
from kubesim.validation import names
from kubesim.validation.constraints import Expressions
from kubesim.validation.device_requests import list_taint_effects
from kubesim.validation.errors import (
    Check,
    FieldError,
    check_each,
    check_fields,
    check_one_of,
    check_unique,
    duplicate,
    forbidden,
    invalid,
    one_of,
    require,
    required,
    too_long,
    too_many,
)
from kubesim.validation.nodes import check_node_allocatable, check_node_selector
from kubesim.validation.request_policy import check_policy
from reference_allocator.api.limits import (
    ATTRIBUTE_VALUE_MAX,
    ATTRIBUTE_VALUES_MAX,
    ATTRIBUTES_AND_CAPACITIES_MAX,
    CONSUMES_COUNTERS_MAX,
    COUNTERS_MAX,
    TAINTS_MAX,
    attribute_values,
)

ONE_VALUE: Final = "exactly one value must be specified"
VERSION_TEXT: Final = "must be a string compatible with semver.org spec 2.0.0"
_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes")
_VALUES: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_LISTS: Final = ("bools", "ints", "strings", "versions")
_BINDING_FIELDS: Final = ("bindingConditions", "bindingFailureConditions")
_BINDING_MAX: Final = 4
_GROUPS_MAX: Final = 2
_KEY_MAX: Final = 96  # A domain, a slash and a name.
_KEYS_WITH_PATHS_UNTIL: Final = 35
"""The last minor that says of a wrong key of a map at which key it is."""


def check_device(
    device: Obj, old: Obj | None, path: str, *, per_device: bool, server: Expressions | None
) -> Iterator[FieldError]:
    """Check a device; what ``old`` had and it still has is not looked into again.

    ``server``: what the API server is; None for the newest that is known.
    """
    yield from names.check_label(device.get("name") or "", f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    total = len(attributes) + len(capacity)
    if total > ATTRIBUTES_AND_CAPACITIES_MAX:
        most = ATTRIBUTES_AND_CAPACITIES_MAX
        detail = f"the total number of attributes and capacities must not exceed {most}"
        yield invalid(path, total, detail)
    values = attribute_values(attributes)
    if values > ATTRIBUTE_VALUES_MAX:
        detail = f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"
        yield invalid(path, values, detail)
    keys_have_paths = server is not None and server.minor <= _KEYS_WITH_PATHS_UNTIL
    for name, attribute in attributes.items():
        shown = f"{path}.attributes[{shorten_key(name)}]"
        place = shown if keys_have_paths else f"{path}.attributes"
        yield from names.check_qualified_name(name, place)
        place = f"{path}.attributes[{name}]"
        is_declared = server is None or server.with_declared_rules
        yield from _check_attribute(attribute, place, shown, is_declared=is_declared)
    looks_again = server is not None and not server.with_declared_rules
    if old is None or looks_again or capacity != (old.get("capacity") or {}):
        shared = bool(device.get("allowMultipleAllocations"))
        yield from _check_capacity(capacity, path, shared=shared, server=server)
    taints = device.get("taints") or []
    if old is None or taints != (old.get("taints") or []):
        check = partial(check_taint, server=server)
        yield from check_each(taints, TAINTS_MAX, check, f"{path}.taints")
    if consumed := device.get("consumesCounters"):
        inner = f"{path}.consumesCounters"
        yield from check_unique(
            consumed, CONSUMES_COUNTERS_MAX, _check_consumption, inner, by="counterSet"
        )
    yield from _check_node_selection(device, path, per_device=per_device)
    yield from check_binding(device, path)
    if resources := device.get("nodeAllocatableResources"):
        yield from check_node_allocatable(resources, capacity, f"{path}.nodeAllocatableResources")


def _check_capacity(
    capacity: Mapping[str, Any], path: str, *, shared: bool, server: Expressions | None
) -> Iterator[FieldError]:
    fractional = server is None or server.with_fractional_ranges
    bounded = server is None or server.with_declared_rules
    keys_have_paths = server is not None and server.minor <= _KEYS_WITH_PATHS_UNTIL
    for name, value in capacity.items():
        shown = f"{path}.capacity[{shorten_key(name)}]"
        yield from names.check_qualified_name(
            name, shown if keys_have_paths else f"{path}.capacity"
        )
        policy, inner = value.get("requestPolicy"), f"{shown}.requestPolicy"
        if policy is not None and not shared:
            yield forbidden(inner, "allowMultipleAllocations must be true")
        elif policy is not None:
            amount = value.get("value") or "0"
            options = {"fractional": fractional, "bounded": bounded}
            yield from check_policy(policy, amount, inner, **options)


def shorten_key(key: str) -> str:
    """Return an attribute's or a capacity's name as paths have it (``truncateIfTooLong``)."""
    if len(key) <= _KEY_MAX:
        return key
    kept = _KEY_MAX - len("...")
    return f"{key[: (kept + 1) // 2]}...{key[-(kept // 2) :]}"


def _check_node_selection(device: Obj, path: str, *, per_device: bool) -> Iterator[FieldError]:
    if not per_device:
        if any(device.get(field) is not None for field in _NODE_FIELDS):
            detail = (
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            )
            yield invalid(path, None, detail)
        return
    if device.get("nodeName"):
        yield from names.check_subdomain(device["nodeName"], f"{path}.nodeName")
    elif device.get("nodeName") is not None:
        yield invalid(f"{path}.nodeName", "", "must not be empty")
    if device.get("nodeSelector") is not None:
        yield from check_node_selector(device["nodeSelector"], f"{path}.nodeSelector")
    if device.get("allNodes") is False:
        yield invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    chosen = [field for field in _NODE_FIELDS if device.get(field) not in (None, "", False)]
    rule = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
        "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    if not chosen:
        yield required(path, rule)
    elif len(chosen) > 1:
        yield invalid(path, "{" + ", ".join(f"`{field}`" for field in chosen) + "}", rule)


def check_binding(device: Obj, path: str) -> Iterator[FieldError]:
    """Check what ``validateDeviceBindingParameters`` checks."""
    binding_conditions, failure_conditions = (device.get(field) or [] for field in _BINDING_FIELDS)
    if not binding_conditions and not failure_conditions:
        return
    for field, conditions in zip(
        _BINDING_FIELDS, (binding_conditions, failure_conditions), strict=True
    ):
        yield from check_each(conditions, _BINDING_MAX, names.check_label_key, f"{path}.{field}")
    for field, conditions in zip(
        _BINDING_FIELDS, (binding_conditions, failure_conditions), strict=True
    ):
        for index, condition in enumerate(conditions):
            inner = f"{path}.{field}[{index}]"
            if condition in conditions[:index]:
                yield duplicate(inner, condition)
            if conditions is failure_conditions and condition in binding_conditions:
                detail = "bindingFailureConditions must not overlap with bindingConditions"
                yield invalid(inner, condition, detail)
    for missing, used in (_BINDING_FIELDS, _BINDING_FIELDS[::-1]):
        if device.get(used) and not device.get(missing):
            detail = f"{missing} are required to use {used}"
            yield invalid(f"{path}.{missing}", device.get(missing), detail)


def _check_attribute(
    attribute: Obj, path: str, shown: str, *, is_declared: bool
) -> Iterator[FieldError]:
    """Check an attribute at a path, which what is wrong with its values has in a short form.

    ``is_declared``: the server has the declared rule that it has one value.
    """
    values = [field for field, value in attribute.items() if value is not None]
    for field in values:
        texts = attribute[field] if field in _LISTS else [attribute[field]]
        if field in _LISTS and not texts:
            yield invalid(f"{shown}.{field}", texts, "must not be empty if specified")
        for index, text in enumerate(texts):
            inner = f"{shown}.{field}[{index}]" if field in _LISTS else f"{shown}.{field}"
            if field.startswith("version") and not is_semver(text):
                yield invalid(inner, text, VERSION_TEXT)
            if isinstance(text, str) and len(text) > ATTRIBUTE_VALUE_MAX:
                yield too_long(inner, ATTRIBUTE_VALUE_MAX)
    # The rule that is written by hand counts empty lists, and is left out where the declared one
    # finds the same.
    filled = [field for field in values if attribute[field] != []] if is_declared else values
    if is_declared and len(values) != 1 and (shown != path or len(filled) == 1):
        value = show_internal("resource/v1.DeviceAttribute", attribute) if values else ""
        yield invalid(shown, value, ONE_VALUE)
    yield from check_one_of(filled, _VALUES, path)


def is_semver(text: str, digits: int | None = None) -> bool:
    """Return whether a text has the form of a version (``semverRe``).

    ``digits``: the most that a number may have; None where any number of them is right, though
    who reads it may not be able to.
    """
    number = r"(0|[1-9]\d*)" if digits is None else rf"(0|[1-9]\d{{0,{digits - 1}}})"
    part = rf"({number}|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    build = r"[0-9a-zA-Z-]+"
    pattern = rf"{number}\.{number}\.{number}(-{part}(\.{part})*)?(\+{build}(\.{build})*)?"
    return re.fullmatch(pattern, text, re.ASCII) is not None


def check_taint(taint: Obj, path: str, server: Expressions | None) -> Iterator[FieldError]:
    """Check a taint; ``server``: what the API server is; None for the newest that is known."""
    checks: Mapping[str, Check] = {
        "key": names.check_label_key,
        "value": names.check_label_value,
        "effect": one_of(*list_taint_effects(server)),
    }
    yield from check_fields(taint, path, checks)


def check_counters(holder: Obj, path: str, field: str) -> Iterator[FieldError]:
    yield from check_fields(
        holder, path, {field: require(names.check_label), "counters": require(_check_counter_names)}
    )


def _check_counter_names(counters: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if len(counters) > COUNTERS_MAX:
        yield too_many(path, len(counters), COUNTERS_MAX)
        return
    for name in counters:
        yield from names.check_label(name, path)


def _check_consumption(consumption: Obj, path: str) -> Iterator[FieldError]:
    yield from check_counters(consumption, path, "counterSet")
    groups = consumption.get("compatibilityGroups") or []
    yield from check_unique(
        groups, _GROUPS_MAX, names.check_label, f"{path}.compatibilityGroups", by=str
    )
