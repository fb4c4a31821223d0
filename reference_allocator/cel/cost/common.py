"""Ranges, and the sizes that the API allows, for all estimates.

Ranges saturate at 64 bits as in Go. The API bounds names, values and their number, so a cost can be
estimated without a device (``k8s.io/dynamic-resource-allocation/cel/compile.go``,
``sizeEstimator``; ``resource/v1`` limits).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MAX: Final = 2**64 - 1
STRING_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40


def scale(value: int, factor: float) -> int:
    """Return the value times a factor, rounded up."""
    if value > 0 and factor > 0 and float(value) > float(MAX) / factor:
        return MAX
    return min(math.ceil(float(value) * factor), MAX)


class Range(NamedTuple):
    """The costs or sizes from ``low`` to ``high``, both included."""

    low: int
    high: int

    def add(self, other: Range) -> Range:
        """Return the range of sums (cel-go ``CostEstimate.Add``)."""
        return Range(min(self.low + other.low, MAX), min(self.high + other.high, MAX))

    def multiply(self, other: Range) -> Range:
        """Return the range of products (cel-go ``CostEstimate.Multiply``)."""
        return Range(min(self.low * other.low, MAX), min(self.high * other.high, MAX))

    def scale(self, factor: float) -> Range:
        """Return both ends times a factor, rounded up (``CostEstimate.MultiplyByCostFactor``)."""
        return Range(scale(self.low, factor), scale(self.high, factor))

    def union(self, other: Range) -> Range:
        """Return the smallest range that has both (cel-go ``CostEstimate.Union``)."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def fixed_range(value: int) -> Range:
    """Return the range of one value (cel-go ``FixedCostEstimate``)."""
    return Range(value, value)


UNKNOWN: Final = Range(0, MAX)


@dataclass(frozen=True, slots=True)
class _Decl:
    """A declared type: its largest size, and the types of its keys, elements or fields."""

    size: int
    key: _Decl | None = None
    element: _Decl | None = None
    fields: dict[str, _Decl] = field(default_factory=dict)


_ATTRIBUTE: Final = _Decl(64)  # DeviceAttributeMaxValueLength
_ID: Final = _Decl(32)  # DeviceMaxIDLength
_DOMAIN: Final = _Decl(63)  # DeviceMaxDomainLength
_PER_DEVICE: Final = 32  # ResourceSliceMaxAttributesAndCapacitiesPerDevice
_QUANTITY: Final = _Decl(0)
_DEVICE: Final = _Decl(
    0,
    fields={
        "driver": _Decl(63),  # DriverNameMaxLength
        "allowMultipleAllocations": _Decl(1),
        "attributes": _Decl(_PER_DEVICE, _DOMAIN, _Decl(_PER_DEVICE, _ID, _ATTRIBUTE)),
        "capacity": _Decl(_PER_DEVICE, _DOMAIN, _Decl(_PER_DEVICE, _ID, _QUANTITY)),
    },
)


def device_size(path: tuple[str, ...]) -> Range | None:
    """Return the size at the end of a path such as ``("device", "attributes", "@values", "x")``."""
    if not path or path[0] != "device":
        return None
    current = _DEVICE
    for name in path[1:]:
        following: _Decl | None
        if name in ("@items", "@values"):
            following = current.element
        elif name == "@keys":
            following = current.key
        else:
            following = current.fields.get(name)
            if following is None and current.element is _ATTRIBUTE:
                following = _ATTRIBUTE
        if following is None:
            return None
        current = following
    return Range(0, current.size)
