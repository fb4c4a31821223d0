"""What slices say of nodes: which can use a device, and what it takes of a node's own resources.

Source: ``ValidateNodeSelector`` in pkg/apis/core/validation/validation.go, and
``validateNodeAllocatableResources`` (KEP-5517) in pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kube.values import Obj
from kubesim.validation import names
from kubesim.validation.errors import (
    FieldError,
    check_one_of,
    forbidden,
    invalid,
    not_found,
    required,
)
from reference_allocator.api.quantity import parse_quantity

_RESOURCES = ("cpu", "memory")


def check_node_selector(selector: Obj, path: str) -> Iterator[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        inner = f"{path}.nodeSelectorTerms[{index}]"
        for number, rule in enumerate(term.get("matchExpressions") or []):
            yield from _check_label_rule(rule, f"{inner}.matchExpressions[{number}]")
        for number, rule in enumerate(term.get("matchFields") or []):
            yield from _check_field_rule(rule, f"{inner}.matchFields[{number}]")


def _check_label_rule(rule: Obj, path: str) -> Iterator[FieldError]:
    values = rule.get("values") or []
    match rule.get("operator") or "":
        case "In" | "NotIn":
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{path}.values", detail)
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{path}.values", detail)
        case "Gt" | "Lt":
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{path}.values", detail)
        case operator:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from names.check_label_key(rule.get("key") or "", f"{path}.key")
    for index, value in enumerate(values):
        yield from names.check_label_value(value, f"{path}.values[{index}]")


def _check_field_rule(rule: Obj, path: str) -> Iterator[FieldError]:
    values, key = rule.get("values") or [], rule.get("key") or ""
    if rule.get("operator") not in ("In", "NotIn"):
        detail = "not a valid selector operator"
        yield invalid(f"{path}.operator", rule.get("operator") or "", detail)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if key != "metadata.name":
        yield invalid(f"{path}.key", key, "not a valid field selector key")
    else:
        for index, value in enumerate(values):
            yield from names.check_subdomain(value, f"{path}.values[{index}]")


def check_node_allocatable(
    resources: Mapping[str, Obj], capacity: Mapping[str, Any], path: str
) -> Iterator[FieldError]:
    """Check resource -> how much of it a device with this capacity takes."""
    for name, demand in resources.items():
        inner = f"{path}[{name}]"
        if name not in _RESOURCES and not name.startswith("hugepages-"):
            yield invalid(inner, name, "must be a node allocatable resource name")
        mapped, overhead = demand.get("mapping"), demand.get("overhead")
        if mapped is None and overhead is None:
            yield required(inner, "at least one of mapping or overhead must be set")
        if mapped is not None:
            yield from _check_mapping(mapped, capacity, f"{inner}.mapping")
        if overhead is not None:
            yield from _check_overhead(overhead, f"{inner}.overhead")


def _check_mapping(mapped: Obj, capacity: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    key, multiplier = mapped.get("capacityKey"), mapped.get("capacityMultiplier")
    if key is not None:
        if not key:
            yield invalid(f"{path}.capacityKey", "", "capacityKey must not be an empty string")
        elif key not in capacity:
            yield not_found(f"{path}.capacityKey", key)
        if multiplier is None:
            detail = "capacityMultiplier is required when capacityKey is set"
            yield required(f"{path}.capacityMultiplier", detail)
        elif _sign(multiplier) <= 0:
            yield invalid(f"{path}.capacityMultiplier", str(multiplier), "must be positive")
    count = mapped.get("deviceMultiplier")
    if count is not None and _sign(count) <= 0:
        yield invalid(f"{path}.deviceMultiplier", str(count), "must be positive")
    if multiplier is not None and key is None:
        detail = "capacityKey is required when capacityMultiplier is set"
        yield required(f"{path}.capacityKey", detail)
    yield from check_one_of(
        [name for name, value in mapped.items() if value is not None],
        ("capacityKey", "deviceMultiplier"),
        path,
    )


def _check_overhead(overhead: Obj, path: str) -> Iterator[FieldError]:
    if not overhead.keys() & {"perPod", "perContainer"}:
        yield invalid(path, "", "at least one of perPod or perContainer must be set")
    for name in ("perPod", "perContainer"):
        if name in overhead and _sign(overhead[name]) < 0:
            yield invalid(f"{path}.{name}", str(overhead[name]), "must be non-negative")


def _sign(value: Any) -> int:
    return parse_quantity(str(value)).sign()
