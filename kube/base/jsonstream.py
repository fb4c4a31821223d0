"""JSON that is decoded value by value, so that its text and what is made of it are not both there.

The text of a large cluster takes a third of the memory of its objects. What was decoded is let go
of, and whoever reads a list decides of each element whether it stays.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from kube.base.strictjson import BoundsCounter, make_sharing_decoder

_NO_SPACE: Final = re.compile(r"[^ \t\n\r]")
_CUT_NUMBER: Final = re.compile(r"[-+.eE0-9]*\Z")
"""What follows a value at the end of what was decoded, if it may be the first part of a number."""


class JsonTextError(ValueError):
    """The text is not JSON that reads the same for all; ``line`` (from 1) says where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class JsonStream:
    """The values of a text, one after the other.

    Its methods raise JsonTextError; BoundsError: the text would take too much memory;
    UnicodeDecodeError; and what ``read`` raises.

    Args:
        read: returns the next bytes of a JSON text in UTF-8, none at the end.
    """

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        self._bounds = BoundsCounter()
        self._text = ""
        self._position = 0
        self._line, self._counted = 1, 0
        self._decode_bytes = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decoder = make_sharing_decoder()

    @property
    def line(self) -> int:
        """The line (from 1) of what is read next."""
        self._line += self._text.count("\n", self._counted, self._position)
        self._counted = self._position
        return self._line

    def peek(self) -> str:
        """Return the next character that is no space; an empty text at the end."""
        while True:
            found = _NO_SPACE.search(self._text, self._position)
            if found is not None:
                self._position = found.start()
                return found.group()
            self._position = len(self._text)
            if not self._decode_more():
                return ""

    def skip(self, find_end: Callable[[str, int], int]) -> None:
        """Pass over what is between two documents; ``find_end``: where that ends in a text."""
        while True:
            end = find_end(self._text, self._position)
            if self._text[end : end + 1] in ("{", "[") or not self._decode_more():
                self._position = end
                return

    def read_value(self) -> Any:
        """Return the next value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:
                if not self._decode_more():  # it may only be cut off by the window
                    raise self._make_error(error.msg, error.pos) from None
                continue
            except ValueError as error:  # a key that is there twice, NaN, a number of 5,000 digits
                raise JsonTextError(self.line, str(error)) from None
            if not _CUT_NUMBER.match(self._text, end) or not self._decode_more():
                self._position = end
                return value

    def read_members(self) -> Iterator[str]:
        """Yield the keys of the object that comes next; before the next one its value is read."""
        known: set[str] = set()
        for _ in self._read_parts("}"):
            if self.peek() != '"':
                raise self._make_error("Expecting property name enclosed in double quotes")
            key = self.read_value()
            if key in known:
                raise JsonTextError(self.line, f"the key {key[:60]!r} occurs twice")
            known.add(key)
            if self.peek() != ":":
                raise self._make_error("Expecting ':' delimiter")
            self._position += 1
            yield key

    def read_elements(self) -> Iterator[None]:
        """Yield before each element of the list that comes next, which is read then."""
        return self._read_parts("]")

    def _read_parts(self, end: str) -> Iterator[None]:
        self.peek()
        self._position += 1
        if self.peek() == end:
            self._position += 1
            return
        while True:
            yield
            found = self.peek()
            if found not in (",", end):
                raise self._make_error("Expecting ',' delimiter")
            self._position += 1
            if found == end:
                return

    def _make_error(self, message: str, position: int | None = None) -> JsonTextError:
        self._position = self._position if position is None else position
        return JsonTextError(self.line, message)

    def _decode_more(self) -> bool:
        """Decode some more of the text; return False at the end."""
        remaining = len(self._text) - self._position
        chunks: list[bytes] = []
        size = 0
        while size <= remaining and (chunk := self._read()):
            self._bounds.add(chunk)
            chunks.append(chunk)
            size += len(chunk)  # twice as much, so that a long value is not begun again too often
        more = self._decode_bytes(b"".join(chunks), not chunks)
        if not more and not chunks:
            return False
        self._line += self._text.count("\n", self._counted, self._position)
        self._text = self._text[self._position :] + more
        self._position = self._counted = 0
        return True
