"""What a ``google.protobuf.Any`` holds: a well-known message in its wire format.

Go looks the type up among all messages linked into the program; here only the well-known ones are
known, which are those that an expression could do something with. Go reads 10,000 levels of nested
messages, this `_MAX_DEPTH`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from reference_allocator.cel.protobuf.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    WireError,
    fields,
)
from reference_allocator.cel.runtime.maps import JsonMap
from reference_allocator.cel.runtime.times import duration_of, timestamp_of
from reference_allocator.cel.runtime.values import Message, UInt

_MAX_DEPTH: Final = 100


class Packed(NamedTuple):
    """The fields of an Any."""

    type_url: str
    value: bytes


class Unpacked(NamedTuple):
    """What it holds, as a CEL value."""

    value: Any


def _last(data: bytes, number: int, kind: int, default: Any) -> Any:
    for found, wire, payload in fields(data):
        if (found, wire) == (number, kind):
            default = payload
    return default


def _signed(value: int, bits: int) -> int:
    value %= 2**bits
    return value - 2**bits if value >= 2 ** (bits - 1) else value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise WireError from None


def _texts(data: bytes, number: int) -> str:
    """The last string; each that comes has to be one."""
    text = ""
    for found, wire, payload in fields(data):
        if (found, wire) == (number, LENGTH) and isinstance(payload, bytes):
            text = _text(payload)
    return text


def _double(data: bytes) -> float:
    return float(struct.unpack("<d", _last(data, 1, FIXED64, bytes(8)))[0])


def _float(data: bytes) -> float:
    return float(struct.unpack("<f", _last(data, 1, FIXED32, bytes(4)))[0])


def _time(data: bytes) -> tuple[int, int]:
    return _signed(_last(data, 1, VARINT, 0), 64), _signed(_last(data, 2, VARINT, 0), 32)


def _list(data: bytes, depth: int = 0) -> list[Any]:
    return [
        _value(payload, depth + 1)
        for number, kind, payload in fields(data)
        if (number, kind) == (1, LENGTH) and isinstance(payload, bytes)
    ]


def _struct(data: bytes, depth: int = 0) -> JsonMap:
    result = JsonMap()
    for number, kind, entry in fields(data):
        if (number, kind) == (1, LENGTH) and isinstance(entry, bytes):
            value = b"".join(
                payload
                for field, wire, payload in fields(entry)
                if (field, wire) == (2, LENGTH) and isinstance(payload, bytes)
            )
            result[_texts(entry, 1)] = _value(value, depth + 1)
    return result


def _value(data: bytes, depth: int = 0) -> Any:
    """A Value: of its cases the last one counts, and parts of a message case are merged."""
    if depth > _MAX_DEPTH:
        raise WireError
    case, content = 0, b""
    value: Any = None
    for number, kind, payload in fields(data):
        if (number, kind) in ((1, VARINT), (4, VARINT)):
            value = None if number == 1 else payload != 0
        elif (number, kind) == (2, FIXED64) and isinstance(payload, bytes):
            value = float(struct.unpack("<d", payload)[0])
        elif (number, kind) == (3, LENGTH) and isinstance(payload, bytes):
            value = _text(payload)
        elif (number, kind) in ((5, LENGTH), (6, LENGTH)) and isinstance(payload, bytes):
            content = content + payload if case == number else payload
            value = _struct(content, depth) if number == 5 else _list(content, depth)
        else:
            continue
        case = number
    return value


def _inner(data: bytes) -> Packed:
    return Packed(_texts(data, 1), _last(data, 2, LENGTH, b""))


def _empty(data: bytes) -> Message:
    for _ in fields(data):
        pass
    return Message("google.protobuf.Empty", {}, "*emptypb.Empty")


_DECODERS: Final[dict[str, Callable[[bytes], Any]]] = {
    "BoolValue": lambda data: _last(data, 1, VARINT, 0) != 0,
    "BytesValue": lambda data: _last(data, 1, LENGTH, b""),
    "DoubleValue": _double,
    "Duration": lambda data: duration_of(*_time(data)),
    "Empty": _empty,
    "FloatValue": _float,
    "Int32Value": lambda data: _signed(_last(data, 1, VARINT, 0), 32),
    "Int64Value": lambda data: _signed(_last(data, 1, VARINT, 0), 64),
    "ListValue": _list,
    "StringValue": lambda data: _texts(data, 1),
    "Struct": _struct,
    "Timestamp": lambda data: timestamp_of(*_time(data)),
    "UInt32Value": lambda data: UInt(_last(data, 1, VARINT, 0) % 2**32),
    "UInt64Value": lambda data: UInt(_last(data, 1, VARINT, 0)),
    "Value": _value,
}


def _name(packed: Packed) -> str:
    name = packed.type_url.rpartition("/")[2]
    return name.removeprefix("google.protobuf.") if name.startswith("google.protobuf.") else ""


def unpack(packed: Packed) -> Unpacked | None:
    """What it holds, or None when it cannot be read."""
    for _ in range(_MAX_DEPTH):
        name = _name(packed)
        try:
            if name != "Any":
                decode = _DECODERS.get(name)
                return None if decode is None else Unpacked(decode(packed.value))
            packed = _inner(packed.value)
        except WireError:
            return None
    return None


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
    if _name(packed) == "Any":
        try:
            inner = _inner(packed.value)
        except WireError:
            pass
        else:
            return f"[{packed.type_url}]:{{{show(inner)}}}"
    parts = []
    if packed.type_url:
        parts.append(f"type_url:{_quoted(packed.type_url.encode())}")
    if packed.value:
        parts.append(f"value:{_quoted(packed.value)}")
    return " ".join(parts)
