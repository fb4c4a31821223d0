"""Objects as clients of Go send them: Kubernetes' protobuf, which client-go prefers over JSON.

The envelope is that of apimachinery/pkg/runtime/serializer/protobuf (four bytes, then
``runtime.Unknown``). The number of a field comes from the Go types (`ci/upstream/fielddump
-numbers`), its form from the table that everything else is checked against
(`reference_allocator.api.schema`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from reference_allocator.api.schema import LIST, MAP, roots, types

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\0"
_NUMBERS: Final = "numbers-1.37.json"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH: Final = 32
_DROPPED: Final = object()
_DELETE_OPTIONS: Final = ("", "gracePeriodSeconds", "preconditions", "", "propagationPolicy")
"""Fields of ``metav1.DeleteOptions``, which no table has, by their number (generated.proto)."""


@cache
def _load_numbers() -> Mapping[str, Mapping[str, str]]:
    numbers: Mapping[str, Mapping[str, str]] = json.loads(
        files(__package__).joinpath(_NUMBERS).read_text(encoding="utf-8")
    )
    return numbers


def decode_protobuf(data: bytes) -> dict[str, Any]:
    """Return the object in a request's body, as JSON would have it. Raises ValueError."""
    if not data.startswith(_MAGIC):
        raise ValueError("it does not begin as Kubernetes' protobuf does")
    envelope = dict(_read_fields(data[len(_MAGIC) :]))
    meta = dict(_read_fields(_require_bytes(envelope.get(1, b""))))
    api_version, kind = (_require_bytes(meta.get(number, b"")).decode() for number in (1, 2))
    raw = _require_bytes(envelope.get(2, b""))
    if kind == "DeleteOptions":
        return _decode_delete_options(raw)
    root = roots().get(f"{api_version}/{kind}", "")
    if root not in _load_numbers():
        raise ValueError(f"{kind} in {api_version} is not taken as protobuf; send JSON")
    named = {"apiVersion": api_version, "kind": kind}
    return named | _decode_message(root, raw, 0)


def _decode_delete_options(data: bytes) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for number, value in _read_fields(data):
        name = _DELETE_OPTIONS[number] if number < len(_DELETE_OPTIONS) else ""
        if name == "preconditions":
            preconditions = dict(_read_fields(_require_bytes(value)))
            fields = {1: "uid", 2: "resourceVersion"}
            options[name] = {
                fields[field_number]: _require_bytes(text).decode()
                for field_number, text in preconditions.items()
            }
        elif name == "propagationPolicy":
            options[name] = _require_bytes(value).decode()
        elif name:
            options[name] = value
    return options


def _decode_message(owner: str, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise ValueError("it is nested too deep")
    shapes, numbers = types()[owner], _load_numbers().get(owner, {})
    message: dict[str, Any] = {}
    for number, value in _read_fields(data):
        text = numbers.get(str(number), "")
        name = text.lstrip("*")
        if not name:
            raise ValueError(f"{owner} has no field of number {number}")
        shape = shapes[name]
        if shape.startswith(LIST):
            message.setdefault(name, []).extend(_decode_items(shape[len(LIST) :], value, depth))
        elif shape.startswith(MAP):
            entry = dict(_read_fields(_require_bytes(value)))
            key = _require_bytes(entry.get(1, b"")).decode()
            inner = shape[len(MAP) :]
            message.setdefault(name, {})[key] = _decode_value(inner, entry.get(2, b""), depth)
        else:
            field_value = _decode_value(shape, value, depth)
            # What is empty and no pointer was not set: Go has no other way to say so.
            if field_value is not _DROPPED and (field_value != "" or text.startswith("*")):
                message[name] = field_value
    return message


def _decode_items(shape: str, value: int | bytes, depth: int) -> Iterator[Any]:
    if shape in ("bool", "int32", "int64") and isinstance(value, bytes):
        offset = 0
        while offset < len(value):  # packed
            packed_value, offset = _read_varint(value, offset)
            yield _decode_value(shape, packed_value, depth)
    else:
        yield _decode_value(shape, value, depth)


def _decode_value(shape: str, value: int | bytes, depth: int) -> Any:
    match shape:
        case "bool":
            return bool(value)
        case "int32" | "int64":
            number = int.from_bytes(value) if isinstance(value, bytes) else value
            return number - (1 << 64) if number >> 63 else number
        case "string":
            return _require_bytes(value).decode()
        case "quantity":
            return _require_bytes(dict(_read_fields(_require_bytes(value))).get(1, b"")).decode()
        case "time":
            return _decode_time(dict(_read_fields(_require_bytes(value))))
        case "any":
            raw = _require_bytes(dict(_read_fields(_require_bytes(value))).get(1, b""))
            return json.loads(raw) if raw else _DROPPED
        case "intorstring":
            fields = dict(_read_fields(_require_bytes(value)))
            return _require_bytes(fields[3]).decode() if fields.get(1) else fields.get(2, 0)
    return _decode_message(shape, _require_bytes(value), depth + 1)


def _decode_time(fields: Mapping[int, int | bytes]) -> Any:
    seconds = fields.get(1, 0)
    if not isinstance(seconds, int) or not 0 < seconds < 1 << 35:
        return _DROPPED  # Go's zero time
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _require_bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ValueError("a number stands where a message or a text is expected")


def _read_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field on the wire."""
    offset = 0
    while offset < len(data):
        tag, offset = _read_varint(data, offset)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, offset = _read_varint(data, offset)
            yield number, value
            continue
        if wire == _BYTES:
            size, offset = _read_varint(data, offset)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} is not known")
        if offset + size > len(data):
            raise ValueError("it ends in the middle of a field")
        yield number, data[offset : offset + size]
        offset += size


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        if offset >= len(data):
            break
        byte = data[offset]
        offset += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & (1 << 64) - 1, offset
    raise ValueError("a number does not end")
