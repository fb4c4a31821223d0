"""The Python types of CEL values.

| CEL | Python |
|---|---|
| bool, int, double, string, bytes, null | bool, int, float, str, bytes, None |
| uint | `UInt` |
| list, map | list, dict (for its keys see `runtime.maps`) |
| duration, timestamp | `Duration`, `Timestamp` (nanoseconds) |
| type | `TypeValue` |
| optional | `Optional` |
| Kubernetes types | `Quantity`, `Semver` and others with a class attribute ``cel_type`` |

JSON data is therefore usable as it is, without conversion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from reference_allocator.cel.errors import CelRuntimeError

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1


class UInt(int):
    """An unsigned 64-bit integer; equal to the int of the same value, as CEL compares numbers."""

    __slots__ = ()


@dataclass(slots=True, unsafe_hash=True)
class TypeValue:
    """A type as a value, such as the result of ``type(1)``."""

    cel_type: ClassVar[str] = "type"
    name: str


class UndefinedType(TypeValue):
    """A name that the type checker knows as a type, but that no value has."""


@dataclass(slots=True, unsafe_hash=True)
class Duration:
    """A signed time span in nanoseconds (64 bits)."""

    cel_type: ClassVar[str] = "google.protobuf.Duration"
    nanos: int


@dataclass(slots=True, unsafe_hash=True)
class Timestamp:
    """A point in time, in nanoseconds since 1970-01-01T00:00:00Z."""

    cel_type: ClassVar[str] = "google.protobuf.Timestamp"
    nanos: int


@dataclass(slots=True, eq=False)
class Optional:
    """A value that may be absent. Never compared by Python; see ``runtime.equality``."""

    cel_type: ClassVar[str] = "optional_type"
    value: Any = None
    present: bool = field(kw_only=True)

    def get(self) -> Any:
        """Return the value. Raises CelRuntimeError: it is absent."""
        if not self.present:
            raise CelRuntimeError("optional.none() dereference")
        return self.value


class Growing(list[Any]):
    """The list that a fold builds; appended to in place, as cel-go's ``mutableList``."""

    __slots__ = ()


_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
}


def type_name(value: Any) -> str:
    """Return the CEL type of a value, such as ``string`` or ``kubernetes.Quantity``."""
    name = _TYPE_NAMES.get(value.__class__)
    if name is not None:
        return name
    if isinstance(value, dict):  # the maps of a device know what a missing domain is
        return "map"
    if isinstance(value, list):  # the one that a fold builds
        return "list"
    named: str = value.cel_type
    return named


_NAMES: Final = {
    "bool": ("types.Bool", "bool"),
    "bytes": ("types.Bytes", "[]uint8"),
    "double": ("types.Double", "float64"),
    "google.protobuf.Duration": ("types.Duration", "time.Duration"),
    "google.protobuf.Timestamp": ("types.Timestamp", "time.Time"),
    "int": ("types.Int", "int64"),
    "kubernetes.NamedFormat": ("cel.Format", "cel.Format"),
    "kubernetes.Quantity": ("cel.Quantity", "*resource.Quantity"),
    "kubernetes.Semver": ("cel.Semver", "semver.Version"),
    "kubernetes.URL": ("cel.URL", "*url.URL"),
    "list": ("*types.baseList", "[]ref.Val"),
    "map": ("*types.baseMap", "map[ref.Val]ref.Val"),
    "net.CIDR": ("cel.CIDR", "netip.Prefix"),
    "net.IP": ("cel.IP", "netip.Addr"),
    "null_type": ("types.Null", "structpb.NullValue"),
    "optional_type": ("*types.Optional", "ref.Val"),
    "string": ("types.String", "string"),
    "type": ("*types.Type", "string"),
    "uint": ("types.Uint", "uint64"),
}


def go_type(value: Any) -> str:
    """Return the type that cel-go has for a value, such as ``types.Int``."""
    if value.__class__ is Growing:
        return "*types.mutableList"
    return _NAMES[type_name(value)][0]


def go_value(value: Any) -> str:
    """Return the Go type of a value's content, such as ``int64``."""
    name = type_name(value)
    return _NAMES[name][1] if name in _NAMES else name
