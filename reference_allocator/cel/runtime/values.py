"""What CEL values are in Python.

| CEL | Python |
|---|---|
| bool, int, double, string, bytes, null | bool, int, float, str, bytes, None |
| uint | `UInt` |
| list, map | list, dict (for its keys see `runtime.maps`) |
| duration, timestamp | `Duration`, `Timestamp` (nanoseconds) |
| type | `TypeValue` |
| optional | `Optional` |
| protobuf message | `Message`, for the few that have no other form |
| Kubernetes types | `Quantity`, `Semver` and others with a class attribute ``cel_type`` |

JSON data is therefore usable as it is, without conversion.
"""

from __future__ import annotations

from typing import Any, Final

from reference_allocator.cel.errors import CelRuntimeError

INT_MAX: Final = 2**63 - 1
INT_MIN: Final = -(2**63)
UINT_MAX: Final = 2**64 - 1


class UInt(int):
    """An unsigned 64-bit integer; equal to the int of the same value, as CEL compares numbers."""

    __slots__ = ()


class TypeValue:
    """A type as a value, such as the result of ``type(1)``."""

    __slots__ = ("name",)
    cel_type = "type"

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class UndefinedType(TypeValue):
    """A name that the type checker knows as a type, but that no value has."""

    __slots__ = ()


class Duration:
    """A signed time span in nanoseconds (64 bits)."""

    __slots__ = ("nanos",)
    cel_type = "google.protobuf.Duration"

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


class Timestamp:
    """A point in time, in nanoseconds since 1970-01-01T00:00:00Z."""

    __slots__ = ("nanos",)
    cel_type = "google.protobuf.Timestamp"

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


class Optional:
    """A value that may be absent. Never compared by Python; see ``runtime.equality``."""

    __slots__ = ("present", "value")
    cel_type = "optional_type"

    def __init__(self, value: Any = None, *, present: bool) -> None:
        self.present = present
        self.value = value

    def get(self) -> Any:
        """The value; raises CelRuntimeError when it is absent."""
        if not self.present:
            raise CelRuntimeError("optional.none() dereference")
        return self.value


class Message:
    """A protobuf message that stays one: ``Empty`` and the entries of a ``Struct``.

    All others become what they stand for (``Int64Value`` an int) as soon as they are built.
    """

    __slots__ = ("cel_type", "fields", "go_type")

    def __init__(self, name: str, fields: dict[str, Any], go_type: str) -> None:
        """``fields`` are those that are set; ``go_type`` is how Go's errors call the value."""
        self.cel_type = name
        self.fields = fields
        self.go_type = go_type


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
    """The CEL type of a value, such as ``string`` or ``kubernetes.Quantity``."""
    name = _TYPE_NAMES.get(value.__class__)
    if name is not None:
        return name
    if isinstance(value, dict):  # the maps of a device know what a missing domain is
        return "map"
    if isinstance(value, list):  # the one that a fold builds
        return "list"
    named: str = value.cel_type
    return named
