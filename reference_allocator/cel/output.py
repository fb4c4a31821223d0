"""What becomes of an expression's value: a bool for a selector, plain data for everybody else."""

from __future__ import annotations

from typing import Any, Final

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.values import BoolKey, Optional, UInt, type_name

__all__ = ["to_bool", "to_python"]

# How Go words the failed conversion of a value of each type.
_CONVERSIONS: Final = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "double": "type conversion error from Double to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "google.protobuf.Duration": "type conversion error from 'Duration' to 'bool'",
    "google.protobuf.Timestamp": "type conversion error from 'Timestamp' to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.URL": "type conversion error from 'URL' to 'bool'",
    "kubernetes.NamedFormat": "type conversion error from 'Format' to 'bool'",
    "net.IP": "type conversion error from 'IP' to 'bool'",
    "net.CIDR": "type conversion error from 'CIDR' to 'bool'",
    "type": "type conversion not supported for 'type'",
}


def to_bool(value: Any) -> bool:
    """The result of a selector.

    Raises:
        CelRuntimeError: the value is no bool (``DeviceMatches``).
    """
    inner = value
    while inner.__class__ is Optional and inner.present:
        inner = inner.value
    if inner.__class__ is bool:
        return bool(inner)
    name = type_name(value)
    if inner.__class__ is Optional:
        reason = "optional.none() dereference"
    else:
        kind = type_name(inner)
        reason = _CONVERSIONS.get(kind, f"type conversion error from '{kind}' to 'bool'")
    message = f"CEL result of type {name} could not be converted to bool: {reason}"
    raise CelRuntimeError(message)


def to_python(value: Any) -> Any:
    """A CEL value as JSON-like Python data."""
    if value is None or value.__class__ in (bool, int, float, str, bytes):
        return value
    if isinstance(value, list):
        return [to_python(item) for item in value]
    if isinstance(value, dict):
        return {
            (key.value if key.__class__ is BoolKey else key): to_python(item)
            for key, item in value.items()
        }
    if isinstance(value, UInt):
        return int(value)
    if isinstance(value, Optional):
        return to_python(value.value) if value.present else None
    return str(value)
