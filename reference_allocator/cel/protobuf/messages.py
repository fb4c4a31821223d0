"""Building protobuf messages: ``google.protobuf.Int64Value{value: 1}``.

Kubernetes' environment knows the well-known types of protobuf. Nearly all of them are other values
for CEL: a wrapper is its value, a Struct a map, an Any what it holds. Source: cel-go
``common/types/provider.go`` (NewValue) and ``common/types/pb/type.go`` (unwrap).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.protobuf.anything import Packed, show, unpack
from reference_allocator.cel.protobuf.native import JSON, JSON_LIST, JSON_MAP, to_native
from reference_allocator.cel.runtime.maps import JsonMap, unmap_key
from reference_allocator.cel.runtime.times import duration_of, timestamp_of
from reference_allocator.cel.runtime.values import (
    Message,
    UInt,
    type_name,
)

_REPEATED: Final = "repeated"
_MAP: Final = "map"

_ZERO: Final[dict[str, Any]] = {
    "bool": False,
    "[]uint8": b"",
    "float64": 0.0,
    "float32": 0.0,
    "int32": 0,
    "int64": 0,
    "string": "",
    "uint32": UInt(0),
    "uint64": UInt(0),
}
_WRAPPERS: Final = {
    "BoolValue": "bool",
    "BytesValue": "[]uint8",
    "DoubleValue": "float64",
    "FloatValue": "float32",
    "Int32Value": "int32",
    "Int64Value": "int64",
    "StringValue": "string",
    "UInt32Value": "uint32",
    "UInt64Value": "uint64",
}
_ENTRY: Final = "google.protobuf.Struct.FieldsEntry"
_FIELDS: Final[dict[str, dict[str, str]]] = {
    **{f"google.protobuf.{name}": {"value": kind} for name, kind in _WRAPPERS.items()},
    "google.protobuf.Any": {"type_url": "string", "value": "[]uint8"},
    "google.protobuf.Duration": {"seconds": "int64", "nanos": "int32"},
    "google.protobuf.Empty": {},
    "google.protobuf.ListValue": {"values": _REPEATED},
    "google.protobuf.Struct": {"fields": _MAP},
    _ENTRY: {"key": "string", "value": JSON},
    "google.protobuf.Timestamp": {"seconds": "int64", "nanos": "int32"},
    "google.protobuf.Value": {
        "null_value": "protoreflect.EnumNumber",
        "number_value": "float64",
        "string_value": "string",
        "bool_value": "bool",
        "struct_value": JSON_MAP,
        "list_value": JSON_LIST,
    },
}


def _native(name: str, field: str, value: Any) -> Any:
    kind = _FIELDS[name][field]
    sequence = kind == _REPEATED
    if (sequence and not isinstance(value, list)) or (kind == _MAP and not isinstance(value, dict)):
        raise CelRuntimeError(f"unsupported field type for {name}.{field}: {type_name(value)}")
    try:
        if sequence:
            return [to_native(item, JSON) for item in value]
        if kind == _MAP:
            return JsonMap(
                (to_native(unmap_key(key), "string"), to_native(item, JSON))
                for key, item in value.items()
            )
        return to_native(value, kind)
    except CelRuntimeError as error:
        message = f"field type conversion error for {name}.{field} value type: {error}"
        raise CelRuntimeError(message) from None


def _value(fields: dict[str, Any]) -> Any:
    """Of several fields the last one counts: they are the cases of one."""
    name, value = next(reversed(fields.items()), ("null_value", 0))
    return None if name == "null_value" else value


def _any(fields: dict[str, Any]) -> Any:
    packed = Packed(fields.get("type_url", ""), fields.get("value", b""))
    try:
        return unpack(packed)
    except ValueError:
        message = f"unsupported conversion to ref.Val: (*dynamicpb.Message){show(packed)}"
        raise CelRuntimeError(message) from None


_UNWRAPPED: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "google.protobuf.Any": _any,
    "google.protobuf.Duration": lambda fields: duration_of(**fields),
    "google.protobuf.ListValue": lambda fields: fields.get("values", []),
    "google.protobuf.Struct": lambda fields: fields.get("fields", JsonMap()),
    "google.protobuf.Timestamp": lambda fields: timestamp_of(**fields),
    "google.protobuf.Value": _value,
}


def build(name: str, values: dict[str, Any]) -> Any:
    """The value of ``name{field: value}``.

    Raises:
        CelRuntimeError: a field's value does not fit, or there is no such message: some names that
            the type checker knows cannot be built.
    """
    kinds = _FIELDS.get(name)
    if kinds is None:
        raise CelRuntimeError(f"unknown type '{name}'")
    fields = {field: _native(name, field, value) for field, value in values.items()}
    unwrapped = _UNWRAPPED.get(name)
    if unwrapped is not None:
        return unwrapped(fields)
    if list(kinds) == ["value"]:
        return fields.get("value", _ZERO[kinds["value"]])
    return Message(name, fields, "*dynamicpb.Message")


def qualify(message: Message, name: Any) -> tuple[Any, bool]:
    """A field's value, and whether it is set to anything but its default.

    Raises:
        CelRuntimeError: the message has no such field.
    """
    if name.__class__ is not str:
        raise CelRuntimeError("no such overload")
    kind = _FIELDS[message.cel_type].get(name)
    if kind is None:
        raise CelRuntimeError(f"no such field '{name}'")
    default = _ZERO.get(kind)
    value = message.fields.get(name, default)
    return value, name in message.fields and (kind == JSON or value != default)
