r"""The reading of literals: numbers within 64 bits, strings and bytes with their escapes.

The rules are cel-go's (``parser/unescape.go``): raw strings keep backslashes, ``\x`` and octal
escapes are code points in a string and single bytes in bytes, and a surrogate is not a character.
"""

from __future__ import annotations

import re

from reference_allocator.api.quoting import ESCAPES
from reference_allocator.cel.runtime.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_ESCAPE = re.compile(r"\\(?:([xX])(..)|u(....)|U(........)|([0-3][0-7][0-7])|(.))", re.DOTALL)
_SIMPLE = {escape[1]: char for char, escape in ESCAPES.items()}


class LiteralError(ValueError):
    """A literal that the grammar allows but that has no value; ``str()`` is cel-go's text."""


def _parse_integer(text: str) -> int:
    text = re.sub(r"[\t\n\f\r ]", "", text)
    negative = text.startswith("-")
    digits = text.lstrip("-")
    hexadecimal = digits.startswith("0x")
    # 400 digits are far beyond 64 bits already, and Python refuses to read thousands.
    value = int(digits[2:], 16) if hexadecimal else int(digits[:400])  # noqa: FURB166
    return -value if negative else value


def parse_int(text: str) -> int:
    """Return the value of ``-0x1F`` or ``31``. Raises LiteralError: it does not fit 64 bits."""
    value = _parse_integer(text)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def parse_uint(text: str) -> UInt:
    """Return the value of ``31u``. Raises LiteralError: it does not fit 64 bits."""
    value = _parse_integer(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return UInt(value)


def parse_float(text: str) -> float:
    """Return the value of ``-1.5e3``. Raises LiteralError: it is out of range."""
    value = float(re.sub(r"[\t\n\f\r ]", "", text))
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


def _unquote(text: str) -> tuple[str, bool]:
    """Return the text between the quotes, newlines normalised, and whether it is raw."""
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    body = text[width:-width]
    return body.replace("\r\n", "\n").replace("\r", "\n"), raw


def _code_point(value: int) -> str:
    if 0xD800 <= value < 0xE000 or value > 0x10FFFF:
        raise LiteralError("invalid unicode code point")
    return chr(value)


def parse_string(text: str) -> str:
    """Return the value of a quoted, triple-quoted or raw string."""
    body, raw = _unquote(text)
    if raw or "\\" not in body:
        return body

    def replace(match: re.Match[str]) -> str:
        _, hexadecimal, short, long, octal, simple = match.groups()
        if simple is not None:
            return _SIMPLE.get(simple, simple)
        if octal is not None:
            return chr(int(octal, 8))
        return _code_point(int(hexadecimal or short or long, 16))

    return _ESCAPE.sub(replace, body)


def parse_bytes(text: str) -> bytes:
    """Return the value of ``b"..."``; text outside escapes is UTF-8."""
    body, raw = _unquote(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    out = bytearray()
    position = 0
    for match in _ESCAPE.finditer(body):
        out += body[position : match.start()].encode()
        position = match.end()
        _, hexadecimal, _, _, octal, simple = match.groups()
        if simple is not None:
            out += _SIMPLE.get(simple, simple).encode()
        elif octal is not None:
            out.append(int(octal, 8))
        elif hexadecimal is not None:
            out.append(int(hexadecimal, 16))
        else:
            raise LiteralError("unable to unescape string")
    out += body[position:].encode()
    return bytes(out)
