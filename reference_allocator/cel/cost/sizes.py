"""The largest sizes of what a selector can reach through ``device``.

The API bounds names, values and their number, so a cost can be estimated without a device
(``k8s.io/dynamic-resource-allocation/cel/compile.go``, ``sizeEstimator``; ``resource/v1`` limits).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from reference_allocator.cel.cost.ranges import Range


@dataclass(frozen=True, slots=True)
class _Decl:
    """A declared type: its largest size and what it is made of."""

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
    """The size of what a path such as ``("device", "attributes", "@values", "x")`` leads to."""
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
