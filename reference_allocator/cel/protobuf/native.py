"""What CEL values become as fields of protobuf messages, as cel-go's ``ConvertToNative`` has it.

A field has a Go type, named here as Go prints it. JSON values (``*structpb.Value`` and its like)
are kept as the CEL values that they are read as again: null, bool, double, string, list, map.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Any, Final

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.conversions import to_string
from reference_allocator.cel.runtime.go_types import go_type
from reference_allocator.cel.runtime.maps import JsonMap, unmap_key
from reference_allocator.cel.runtime.values import (
    Message,
    Optional,
    UInt,
    type_name,
)

JSON: Final = "*structpb.Value"
JSON_LIST: Final = "*structpb.ListValue"
JSON_MAP: Final = "*structpb.Struct"
_JSON_ITEMS: Final = "[]*structpb.Value"
_ENUM: Final = "protoreflect.EnumNumber"
_JSON_SAFE: Final = 2**53 - 1


def _failed(source: str, target: str) -> CelRuntimeError:
    return CelRuntimeError(f"type conversion error from {source} to '{target}'")


def _bool(value: bool, target: str) -> Any:
    if target not in ("bool", JSON):
        raise _failed("bool", target)
    return value


def _int(value: int, target: str) -> Any:
    if target in ("int32", _ENUM):
        if not -(2**31) <= value < 2**31:
            raise CelRuntimeError("integer overflow")
        return value
    if target == JSON:
        return float(value) if abs(value) <= _JSON_SAFE else str(value)
    if target != "int64":
        raise CelRuntimeError(f"unsupported type conversion from 'int' to {target}")
    return value


def _uint(value: UInt, target: str) -> Any:
    bits = {"uint8": 8, "uint32": 32, "uint64": 64}.get(target)
    if bits is not None:
        if value >= 2**bits:
            raise CelRuntimeError("unsigned integer overflow")
        return value
    if target == JSON:
        return float(value) if value <= _JSON_SAFE else str(int(value))
    raise CelRuntimeError(f"unsupported type conversion from 'uint' to {target}")


def _double(value: float, target: str) -> Any:
    if target == "float32":
        try:
            return float(struct.unpack("<f", struct.pack("<f", value))[0])
        except OverflowError:
            return float("-inf") if value < 0 else float("inf")
    if target not in ("float64", JSON):
        raise _failed("Double", target)
    return value


def _text(value: str, target: str) -> Any:
    if target not in ("string", JSON):
        raise CelRuntimeError(f"unsupported native conversion from string to '{target}'")
    return value


def _bytes(value: bytes, target: str) -> Any:
    if target == JSON:
        return base64.b64encode(value).decode()
    if target != "[]uint8":
        raise _failed("Bytes", target)
    return value


def _null(value: None, target: str) -> Any:
    if target != JSON:
        raise _failed("'null_type'", target)
    return value


def _type(_value: Any, _target: str) -> Any:
    raise CelRuntimeError("type conversion not supported for 'type'")


def _time(value: Any, target: str) -> Any:
    if target != JSON:
        raise _failed(f"'{type_name(value).rpartition('.')[2]}'", target)
    return to_string(value)


def _optional(value: Optional, target: str) -> Any:
    return to_native(value.get(), target)


def _list(items: list[Any], target: str) -> Any:
    if target in (JSON, JSON_LIST, _JSON_ITEMS):
        return [to_native(item, JSON) for item in items]
    if target == "[]uint8":
        return bytes(to_native(item, "uint8") for item in items)
    raise _failed("list", target)


def _map(entries: dict[Any, Any], target: str) -> Any:
    if target in (JSON, JSON_MAP):
        return JsonMap(
            (to_native(unmap_key(key), "string"), to_native(value, JSON))
            for key, value in entries.items()
        )
    if target == JSON_LIST:  # a Go struct with one public field
        items: list[Any] = []
        for key, value in entries.items():
            name = _camel(to_string(unmap_key(key)))
            if name != "Values":
                message = f"no such field '{name}' in type 'structpb.ListValue'"
                raise CelRuntimeError(f"type conversion error, {message}")
            items = to_native(value, _JSON_ITEMS)
        return items
    raise _failed("map", target)


def _camel(name: str) -> str:
    """``list_values`` as ``ListValues`` (``upperCamelCase`` of cel-go)."""
    out = ""
    previous = ""
    for char in name.strip():
        if char not in "_-":
            if previous in ("", "_", "-"):
                out += char.upper()
            else:
                out += char if previous.islower() else char.lower()
        previous = char
    return out


def _message(value: Message, target: str) -> Any:
    if target == JSON:
        fields = {name: item for name, item in value.fields.items() if name != "key" or item}
        return JsonMap(fields)
    if target in (JSON_MAP, JSON_LIST):
        types = f"google.protobuf.{target.rpartition('.')[2]}, {value.cel_type}"
        message = f"pb.Merge() arguments must be the same type. got: {types}"
        raise CelRuntimeError(f"type conversion error: {message}")
    raise _failed(f"'{value.go_type}'", target)


_BY_TYPE: Final[dict[str, Callable[[Any, str], Any]]] = {
    "bool": _bool,
    "bytes": _bytes,
    "double": _double,
    "google.protobuf.Duration": _time,
    "google.protobuf.Timestamp": _time,
    "int": _int,
    "list": _list,
    "map": _map,
    "null_type": _null,
    "optional_type": _optional,
    "string": _text,
    "type": _type,
    "uint": _uint,
}


def to_native(value: Any, target: str) -> Any:
    """The value of a field of a Go type, such as ``int32``.

    Raises:
        CelRuntimeError: there is none.
    """
    name = type_name(value)
    convert = _BY_TYPE.get(name)
    if convert is not None:
        return convert(value, target)
    if isinstance(value, Message):
        return _message(value, target)
    if target == "string" and name != "kubernetes.NamedFormat":
        return str(value)
    raise _failed(f"'{go_type(value).removeprefix('cel.')}'", target)
