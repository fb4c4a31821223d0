"""What stops a strategic merge patch from making an object: its values are converted one by one.

Unlike a decoder of JSON (`decoding`), the converter says nothing of the place, and ends at the
first value that it cannot convert.
Source: pkg/runtime/converter.go of k8s.io/apimachinery (``fromUnstructured``).
"""

from __future__ import annotations

import re
from typing import Any, Final

from kubesim.goforms import load_go_names, load_go_types
from reference_allocator.api import schema
from reference_allocator.api.quantity import WrittenNumber
from reference_allocator.api.schema import LIST, MAP

_SCALARS: Final = ("string", "bool", "int32", "int64")
_KINDS: Final = {str: "string", bool: "bool", list: "slice", dict: "map"}


def find_unconvertible(shape: str, value: Any) -> str:
    """Return what the converter says of a value of a shape; empty if it can be converted.

    Values that read themselves (quantities, times) are left to their own decoder.
    """
    return "" if value is None else _find(shape, value, "")


def _find(shape: str, value: Any, go_type: str) -> str:
    kind = _kind_of(value)
    if shape in _SCALARS:
        return _find_in_scalar(shape, kind, value, go_type)
    if shape.startswith(LIST):
        inner = shape[len(LIST) :]
        if kind != "slice":
            return f"cannot restore slice from {kind}"
        return next(filter(None, (find_unconvertible(inner, item) for item in value)), "")
    if shape.startswith(MAP):
        if kind != "map":
            return f"cannot restore map from {kind}"
        inner = shape[len(MAP) :]
        return next(filter(None, (find_unconvertible(inner, v) for v in value.values())), "")
    fields = schema.types().get(shape)
    if fields is None:
        return ""
    if kind != "map":
        return f"cannot restore struct from: {kind}"
    go_types = load_go_types().get(shape, {})
    for name in dict.fromkeys((*load_go_names().get(shape, ()), *fields)):
        item, inner = value.get(name), fields.get(name, "any")
        if item is not None and (why := _find(inner, item, go_types.get(name, ""))):
            return why
    return ""


def without_place(why: str) -> str:
    """Return what a decoder says of a value that reads itself, which knows no place of it."""
    return re.sub(r"into Go struct field \S+ of type", "into Go value of type", why)


def convert_numbers(shape: str, value: Any) -> Any:
    """Return a value of a shape whose whole numbers are integers of Go, as far as they are none.

    One that does not fit into 32 bits loses those that are too many.
    """
    fields = schema.types().get(shape, {})
    match value:
        case dict():
            other_shape = shape[len(MAP) :] if shape.startswith(MAP) else "any"
            for key, item in value.items():
                value[key] = convert_numbers(fields.get(key, other_shape), item)
        case list():
            inner = shape[len(LIST) :] if shape.startswith(LIST) else "any"
            value[:] = [convert_numbers(inner, item) for item in value]
        case bool():
            return value
        case int() | float():
            number = int(float(value.text) if isinstance(value, WrittenNumber) else value)
            if number != value:
                return value
            if not -(1 << 63) <= number < 1 << 63:
                number = -(1 << 63)
            return (number + (1 << 31)) % (1 << 32) - (1 << 31) if shape == "int32" else number
    return value


def _kind_of(value: Any) -> str:
    if type(value) in _KINDS:
        return _KINDS[type(value)]
    if isinstance(value, dict):
        return "map"
    is_whole = isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    return "int64" if is_whole else "float64"


def _find_in_scalar(wanted: str, kind: str, value: Any, go_type: str) -> str:
    if kind == wanted or (kind == "int64" and wanted == "int32"):
        return ""
    if wanted.startswith("int") and kind == "float64":
        number = float(value.text) if isinstance(value, WrittenNumber) else float(value)
        return "" if number.is_integer() else f"cannot convert float64 to {go_type or wanted}"
    if wanted == "string" and kind == "int64":  # Go would make a character of it
        return f"cannot convert int64 to {go_type or wanted}"
    return f"unrecognized type: {wanted}"
