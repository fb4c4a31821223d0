"""What becomes of an expression's value: a bool for a selector, plain data for everybody else."""

from __future__ import annotations

from typing import Any

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.protobuf.native import to_native
from reference_allocator.cel.runtime.maps import unmap_key
from reference_allocator.cel.runtime.values import Message, Optional, UInt, type_name

__all__ = ["to_bool", "to_python"]


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
    try:
        return bool(to_native(inner, "bool"))
    except CelRuntimeError as reason:
        message = f"CEL result of type {type_name(value)} could not be converted to bool: {reason}"
        raise CelRuntimeError(message) from None


def to_python(value: Any) -> Any:
    """A CEL value as JSON-like Python data."""
    if value is None or value.__class__ in (bool, int, float, str, bytes):
        return value
    if isinstance(value, list):
        return [to_python(item) for item in value]
    if isinstance(value, dict):
        return {unmap_key(key): to_python(item) for key, item in value.items()}
    if isinstance(value, UInt):
        return int(value)
    if isinstance(value, Message):
        return to_python(value.fields)
    if isinstance(value, Optional):
        return to_python(value.value) if value.present else None
    return str(value)
