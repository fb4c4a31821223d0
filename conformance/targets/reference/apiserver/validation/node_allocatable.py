"""What a device takes of its node's own resources (KEP-5517).

Source: validateNodeAllocatableResources in pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    invalid,
    not_found,
    required,
)
from conformance.targets.seam.values import Obj
from reference_allocator.api.quantity import parse_quantity

_RESOURCES = ("cpu", "memory")


def check_node_allocatable(
    resources: Mapping[str, Obj], capacity: Mapping[str, Any], path: str
) -> Iterator[FieldError]:
    """Resource -> how much of it a device with this capacity takes."""
    for name, taken in resources.items():
        inner = f"{path}[{name}]"
        if name not in _RESOURCES and not name.startswith("hugepages-"):
            yield invalid(inner, name, "must be a node allocatable resource name")
        mapped, overhead = taken.get("mapping"), taken.get("overhead")
        if mapped is None and overhead is None:
            yield required(inner, "at least one of mapping or overhead must be set")
        if mapped is not None:
            yield from _mapping(mapped, capacity, f"{inner}.mapping")
        if overhead is not None:
            yield from _overhead(overhead, f"{inner}.overhead")


def _mapping(mapped: Obj, capacity: Mapping[str, Any], path: str) -> Iterator[FieldError]:
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


def _overhead(overhead: Obj, path: str) -> Iterator[FieldError]:
    parts = {name: overhead.get(name) for name in ("perPod", "perContainer")}
    if not any(value is not None for value in parts.values()):
        yield invalid(path, "", "at least one of perPod or perContainer must be set")
    for name, value in parts.items():
        if value is not None and _sign(value) < 0:
            yield invalid(f"{path}.{name}", str(value), "must be non-negative")


def _sign(value: Any) -> int:
    return parse_quantity(str(value)).sign()
