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
def _numbers() -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = json.loads(
        files(__package__).joinpath(_NUMBERS).read_text(encoding="utf-8")
    )
    return found


def decode(data: bytes) -> dict[str, Any]:
    """The object in a request's body, as JSON would have it. Raises ValueError."""
    if not data.startswith(_MAGIC):
        raise ValueError("it does not begin as Kubernetes' protobuf does")
    envelope = dict(_fields(data[len(_MAGIC) :]))
    meta = dict(_fields(_bytes(envelope.get(1, b""))))
    api_version, kind = (_bytes(meta.get(number, b"")).decode() for number in (1, 2))
    raw = _bytes(envelope.get(2, b""))
    if kind == "DeleteOptions":
        return _delete_options(raw)
    root = roots().get(f"{api_version}/{kind}", "")
    if root not in _numbers():
        raise ValueError(f"{kind} in {api_version} is not taken as protobuf; send JSON")
    named = {"apiVersion": api_version, "kind": kind}
    return named | _message(root, raw, 0)


def _delete_options(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        name = _DELETE_OPTIONS[number] if number < len(_DELETE_OPTIONS) else ""
        if name == "preconditions":
            parts = dict(_fields(_bytes(value)))
            fields = {1: "uid", 2: "resourceVersion"}
            found[name] = {fields[part]: _bytes(text).decode() for part, text in parts.items()}
        elif name == "propagationPolicy":
            found[name] = _bytes(value).decode()
        elif name:
            found[name] = value
    return found


def _message(owner: str, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise ValueError("it is nested too deep")
    shapes, numbers = types()[owner], _numbers().get(owner, {})
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        text = numbers.get(str(number), "")
        name = text.lstrip("*")
        if not name:
            raise ValueError(f"{owner} has no field of number {number}")
        shape = shapes[name]
        if shape.startswith(LIST):
            found.setdefault(name, []).extend(_items(shape[len(LIST) :], value, depth))
        elif shape.startswith(MAP):
            entry = dict(_fields(_bytes(value)))
            key = _bytes(entry.get(1, b"")).decode()
            inner = shape[len(MAP) :]
            found.setdefault(name, {})[key] = _value(inner, entry.get(2, b""), depth)
        else:
            one = _value(shape, value, depth)
            # What is empty and no pointer was not set: Go has no other way to say so.
            if one is not _DROPPED and (one != "" or text.startswith("*")):
                found[name] = one
    return found


def _items(shape: str, value: int | bytes, depth: int) -> Iterator[Any]:
    if shape in ("bool", "int32", "int64") and isinstance(value, bytes):
        place = 0
        while place < len(value):  # packed
            one, place = _varint(value, place)
            yield _value(shape, one, depth)
    else:
        yield _value(shape, value, depth)


def _value(shape: str, value: int | bytes, depth: int) -> Any:
    match shape:
        case "bool":
            return bool(value)
        case "int32" | "int64":
            number = int.from_bytes(value) if isinstance(value, bytes) else value
            return number - (1 << 64) if number >> 63 else number
        case "string":
            return _bytes(value).decode()
        case "quantity":
            return _bytes(dict(_fields(_bytes(value))).get(1, b"")).decode()
        case "time":
            return _time(dict(_fields(_bytes(value))))
        case "any":
            raw = _bytes(dict(_fields(_bytes(value))).get(1, b""))
            return json.loads(raw) if raw else _DROPPED
        case "intorstring":
            parts = dict(_fields(_bytes(value)))
            return _bytes(parts[3]).decode() if parts.get(1) else parts.get(2, 0)
    return _message(shape, _bytes(value), depth + 1)


def _time(parts: Mapping[int, int | bytes]) -> Any:
    seconds = parts.get(1, 0)
    if not isinstance(seconds, int) or not 0 < seconds < 1 << 35:
        return _DROPPED  # Go's zero time
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ValueError("a number stands where a message or a text is expected")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field on the wire."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if wire == _BYTES:
            size, place = _varint(data, place)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} is not known")
        if place + size > len(data):
            raise ValueError("it ends in the middle of a field")
        yield number, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    found = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found & (1 << 64) - 1, place
    raise ValueError("a number does not end")
