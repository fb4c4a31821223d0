"""What a ``google.protobuf.Any`` holds: a well-known message in its wire format.

Go looks the type up among all messages linked into the program; here only the well-known ones are
known, which are those that an expression could do something with. Go reads 10,000 levels of nested
messages and refuses a number beyond 64 bits, where protobuf's library reads 100 and cuts it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from reference_allocator.cel.runtime.maps import JsonMap
from reference_allocator.cel.runtime.times import duration_of, timestamp_of
from reference_allocator.cel.runtime.values import Message, UInt

_MAX_DEPTH: Final = 100
_MODULES: Final = {
    "Any": "any_pb2",
    "Duration": "duration_pb2",
    "Empty": "empty_pb2",
    "ListValue": "struct_pb2",
    "Struct": "struct_pb2",
    "Timestamp": "timestamp_pb2",
    "Value": "struct_pb2",
}


class Packed(NamedTuple):
    """The fields of an Any."""

    type_url: str
    value: bytes


def _list(message: Any) -> list[Any]:
    return [_value(item) for item in message.values]


def _struct(message: Any) -> JsonMap:
    return JsonMap((name, _value(item)) for name, item in sorted(message.fields.items()))


def _value(message: Any) -> Any:
    match message.WhichOneof("kind"):
        case None | "null_value":
            return None
        case "struct_value":
            return _struct(message.struct_value)
        case "list_value":
            return _list(message.list_value)
        case kind:
            return getattr(message, kind)


_VALUES: Final[dict[str, Callable[[Any], Any]]] = {
    "Any": lambda message: Packed(message.type_url, message.value),
    "Duration": lambda message: duration_of(message.seconds, message.nanos),
    "Empty": lambda _: Message("google.protobuf.Empty", {}, "*emptypb.Empty"),
    "ListValue": _list,
    "Struct": _struct,
    "Timestamp": lambda message: timestamp_of(message.seconds, message.nanos),
    "Value": _value,
}
for _name in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String"):
    _VALUES[f"{_name}Value"] = lambda message: message.value
for _name in ("UInt32", "UInt64"):
    _VALUES[f"{_name}Value"] = lambda message: UInt(message.value)


def _short_name(packed: Packed) -> str:
    name = packed.type_url.rpartition("/")[2]
    return name.removeprefix("google.protobuf.") if name.startswith("google.protobuf.") else ""


def _open(packed: Packed) -> Any:
    """The message in an Any, that in another one as `Packed`; raises ValueError."""
    from google.protobuf.message import DecodeError  # takes time to import, and few need it

    name = _short_name(packed)
    if name not in _VALUES:
        raise ValueError(f"unknown message type {packed.type_url}")
    module = import_module(f"google.protobuf.{_MODULES.get(name, 'wrappers_pb2')}")
    try:
        return _VALUES[name](getattr(module, name).FromString(packed.value))
    except DecodeError as error:
        raise ValueError(str(error)) from None


def unpack(packed: Packed) -> Any:
    """What it holds, as a CEL value.

    Raises:
        ValueError: it cannot be read.
    """
    value: Any = packed
    for _ in range(_MAX_DEPTH):
        value = _open(value)
        if value.__class__ is not Packed:
            return value
    raise ValueError(f"more than {_MAX_DEPTH} in one another")


def _quoted(data: bytes) -> str:
    """A string of protobuf's text format."""
    special = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    out = []
    for char in data.decode(errors="surrogateescape"):
        code = ord(char)
        if char in special:
            out.append(special[char])
        elif 0xDC80 <= code <= 0xDCFF:
            out.append(f"\\x{code - 0xDC00:02x}")
        elif code < 0x20 or code == 0x7F:
            out.append(f"\\x{code:02x}")
        else:
            out.append(char)
    return f'"{"".join(out)}"'


def show(packed: Packed) -> str:
    """An Any in protobuf's text format, which opens what it knows.

    Go puts one or two spaces between fields, which differs from program to program; here it is one.
    """
    if _short_name(packed) == "Any":
        with contextlib.suppress(ValueError):
            return f"[{packed.type_url}]:{{{show(_open(packed))}}}"
    parts = []
    if packed.type_url:
        parts.append(f"type_url:{_quoted(packed.type_url.encode())}")
    if packed.value:
        parts.append(f"value:{_quoted(packed.value)}")
    return " ".join(parts)
