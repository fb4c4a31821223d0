"""Text in quotes as Go writes it, which is how most error messages show a value."""

from __future__ import annotations

from typing import Final

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
