"""Texts and values as Go prints them, which is how most error messages show a value."""

from __future__ import annotations

from typing import Any, Final

ESCAPES: Final = {
    char: f"\\{letter}" for char, letter in zip('\a\b\f\n\r\t\v"\\', 'abfnrtv"\\', strict=True)
}
"""Character -> its escape in a Go string, for characters that have one of their own."""


def go_quote(text: str) -> str:
    """Return the text as Go's ``%q`` writes it (``strconv.Quote``)."""
    pieces = []
    for char in text:
        code = ord(char)
        if char in ESCAPES:
            pieces.append(ESCAPES[char])
        elif 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, by Python's surrogateescape
            pieces.append(f"\\x{code - 0xDC00:02x}")
        elif char.isprintable():
            pieces.append(char)
        elif code < 0x80:
            pieces.append(f"\\x{code:02x}")
        else:
            pieces.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(pieces)}"'


def show_go(value: Any, *, quotes: bool) -> str:
    """Return a value as Go prints it, with ``%v`` or with ``%#v``."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return go_quote(value) if quotes else value
        case None:
            return "<nil>"
        case list():
            if quotes:
                return "[]interface {}{" + ", ".join(show_go(v, quotes=True) for v in value) + "}"
            return f"[{' '.join(show_go(item, quotes=False) for item in value)}]"
        case dict():
            items = sorted(value.items())
            if quotes:
                pairs = (f"{go_quote(k)}:{show_go(v, quotes=True)}" for k, v in items)
                return "map[string]interface {}{" + ", ".join(pairs) + "}"
            pairs = (f"{key}:{show_go(item, quotes=False)}" for key, item in items)
            return f"map[{' '.join(pairs)}]"
    return str(value)
