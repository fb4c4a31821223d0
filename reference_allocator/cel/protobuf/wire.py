"""Protobuf's wire format, as far as the messages need that an ``Any`` can hold.

Source: protobuf.dev/programming-guides/encoding; unknown fields are skipped, of a field that comes
twice the last one counts, and messages that come twice are merged.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, LENGTH, _START, _END, FIXED32 = range(6)
_MAX_FIELD = 2**29 - 1
_DEPTH = 100


class WireError(ValueError):
    """The bytes are not a message."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(10):
        if at + count >= len(data):
            raise WireError
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if count == 9 and byte > 1:
                raise WireError
            return value, at + count + 1
    raise WireError


def _take(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise WireError
    return data[at : at + size], at + size


def _skip_group(data: bytes, at: int, number: int, depth: int) -> int:
    if depth > _DEPTH:
        raise WireError
    while True:
        tag, at = _varint(data, at)
        if tag & 7 == _END:
            if tag >> 3 != number:
                raise WireError
            return at
        _, at = _payload(data, at, tag, depth + 1)


def _payload(data: bytes, at: int, tag: int, depth: int) -> tuple[int | bytes, int]:
    number, kind = tag >> 3, tag & 7
    if not 1 <= number <= _MAX_FIELD:
        raise WireError
    if kind == VARINT:
        return _varint(data, at)
    if kind in (FIXED64, FIXED32):
        return _take(data, at, 8 if kind == FIXED64 else 4)
    if kind == LENGTH:
        size, at = _varint(data, at)
        return _take(data, at, size)
    if kind == _START:
        return b"", _skip_group(data, at, number, depth)
    raise WireError


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Field number, wire type and payload (an int for `VARINT`) of each field, in order.

    Raises:
        WireError: the bytes are not a message.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        payload, at = _payload(data, at, tag, 0)
        yield tag >> 3, tag & 7, payload
