"""JSON that reads the same for everybody, from files that anybody may have written.

Python takes ``NaN`` and, of a key that is there twice, the last; another reader takes the first. So
one file could say different things to different readers. And two bytes of text, an empty list, take
a hundred times as much memory: what a text comes to is counted before anything is made of it.
"""

from __future__ import annotations

import json
import marshal
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kube.base.errors import UsageError
from kube.base.files import read_regular

MAX_VALUES: Final = 2_500_000
"""Of a text. A snapshot of 5,000 nodes with 8 devices each and 20,000 claims has 1.6 million. Each
takes some 200 bytes once it is looked at, one with a key of its own 300."""

MAX_TEXT: Final = 128 << 20
"""Bytes that a text takes in memory. Such a snapshot has 27 MB, the evidence of a run 15 MB; some
three copies of a text are there at once (the file, the decoded text, the strings in it)."""

MAX_DEPTH: Final = 128
"""Lists and objects within one another; a result file, the deepest, has 15."""

_CHUNK = 1 << 18
_REPEATED = frozenset(
    ("apiVersion", "kind", "namespace", "nodeName", "driver", "pool", "resource", "request")
)
_SHARED_ITEMS, _SHARED_BYTES, _MAX_SHARED = 2, 400, 8192
_MAX_MISSES = 400
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NO_STRUCTURE = bytes(set(range(256)) - set(b'[]{},"'))

# Python's text takes as many bytes for each character as for the widest in it. In UTF-8 a character
# beyond Latin-1 begins with C4 or more, one beyond 16 bits with F0 or more; escaped, with D8 to DB.
_UP_TO_C3 = bytes(range(0xC4))
_UP_TO_EF = bytes(range(0xF0))
# Only behind an odd number of backslashes is it an escape; what a string quotes is none yet.
_ESCAPED_BEYOND_LATIN_1 = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?!00)")
_ESCAPED_BEYOND_16_BITS = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB]")


class BoundsError(ValueError):
    """A text would take too much memory; says what there is too much of, without the file."""


def loads(data: bytes, most_values: int = MAX_VALUES, most_text: int = MAX_TEXT) -> Any:
    """Return the document of a JSON text in UTF-8.

    Raises BoundsError: as `check_bounds`; ValueError: it is not JSON that reads the same for all.
    """
    check_bounds(data, most_values, most_text)
    return parse(data.decode("utf-8-sig"))


def parse(text: str) -> Any:
    """The document of a JSON text whose bounds were checked.

    Raises ValueError: it is not JSON that reads the same for all.
    """
    return DECODER.decode(text)


def check_bounds(
    data: bytes | bytearray,
    most_values: int = MAX_VALUES,
    most_text: int = MAX_TEXT,
    most_depth: int = MAX_DEPTH,
) -> None:
    """Refuse a JSON text that would take too much memory once it is parsed.

    Whether it is JSON at all is not looked at: up to where it is not, it is counted as a parser
    would meet it, an empty list or object as two values.
    Raises BoundsError.
    """
    if len(data) * bytes_of_character(data) > most_text:
        raise BoundsError(f"its text takes more than {most_text >> 20} MiB of memory")
    # Every value but the first follows one of these; with those in strings it is too many at most.
    opening = data.count(b"[") + data.count(b"{")
    values = opening + data.count(b",") + 1
    if values <= most_values and opening <= most_depth:
        return
    counter = BoundsCounter(most_values, most_text, most_depth)
    for start in range(0, len(data), _CHUNK):
        counter.add(data[start : start + _CHUNK])


class BoundsCounter:
    """Counts what a JSON text comes to, chunk by chunk, as `check_bounds` does at once."""

    def __init__(
        self,
        most_values: int = MAX_VALUES,
        most_text: int = MAX_TEXT,
        most_depth: int = MAX_DEPTH,
    ) -> None:
        self._most_values, self._most_text, self._most_depth = most_values, most_text, most_depth
        self._values, self._depth, self._size, self._width = 1, 0, 0, 1
        self._within_string = 0
        self._held = b""

    def add(self, chunk: bytes | bytearray) -> None:
        """Count a chunk. Raises BoundsError: it would be too much."""
        self._size += len(chunk)
        data = self._held + chunk
        self._width = max(self._width, bytes_of_character(data))
        if self._size * self._width > self._most_text:
            raise BoundsError(f"its text takes more than {self._most_text >> 20} MiB of memory")
        # What is escaped is counted beside its backslash.
        backslashes = len(data) - len(data.rstrip(b"\\"))
        self._held = b"\\" * (backslashes % 2)
        if b"\\" in data:
            data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        pieces = data.translate(None, _NO_STRUCTURE).split(b'"')
        outside = b"".join(pieces[self._within_string :: 2])
        self._within_string ^= (len(pieces) - 1) % 2
        self._values += outside.count(b"[") + outside.count(b"{") + outside.count(b",")
        if self._values > self._most_values:
            raise BoundsError(f"it has more than {self._most_values} values")
        brackets = outside.translate(_BRACKETS, _NO_BRACKETS)
        if _is_deeper(b"[" * self._depth + brackets, self._most_depth):
            raise BoundsError(f"it is nested deeper than {self._most_depth}")
        self._depth = max(0, self._depth + brackets.count(b"[") - brackets.count(b"]"))


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a regular file within the bounds, also when it is unpacked (gzip).

    Raises UsageError: it cannot be read or is not one; with ``file:line`` and what is wrong.
    """
    with explain_errors(path):
        document = loads(_unpacked(read_regular(path, MAX_TEXT)))
    if not isinstance(document, dict):
        raise UsageError(f"{path}: $: must be an object")
    return document


@contextmanager
def explain_errors(path: object) -> Iterator[None]:
    """Turn what is wrong with a file's JSON into a UsageError with ``file:line``."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except BoundsError as error:
        raise UsageError(
            f"{path}: is not read, {error}; give a file of fewer nodes and claims"
        ) from None
    except json.JSONDecodeError as error:
        if not error.doc.strip():
            raise UsageError(f"{path}: is empty; take it from its source again") from None
        raise UsageError(f"{path}:{error.lineno}: is not JSON: {error.msg}") from None
    except zlib.error as error:
        raise UsageError(
            f"{path}: cannot be unpacked: {error}; take it from its source again"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not JSON in UTF-8: {error}") from None


def _unpacked(data: bytes) -> bytes:
    """Raises zlib.error: it is damaged or cut off; BoundsError: it is too large."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    unpacking = zlib.decompressobj(wbits=31)
    unpacked = unpacking.decompress(data, MAX_TEXT + 1)
    if len(unpacked) > MAX_TEXT:
        raise BoundsError(f"its text takes more than {MAX_TEXT >> 20} MiB of memory")
    if not unpacking.eof:
        raise zlib.error("it is cut off")
    return unpacked


def bytes_of_character(data: bytes | bytearray) -> int:
    """The most bytes that Python needs for a character of the text, or of a string in it."""
    escaped = b"\\u" in data  # looked for first: the patterns take a second for 10 MB without one
    if escaped and _ESCAPED_BEYOND_16_BITS.search(data):
        return 4
    if not data.isascii():
        wide = data.translate(None, _UP_TO_C3)
        if wide:
            return 4 if wide.translate(None, _UP_TO_EF) else 2
    return 2 if escaped and _ESCAPED_BEYOND_LATIN_1.search(data) else 1


def _is_deeper(brackets: bytes, most: int) -> bool:
    """Return whether ``[`` and ``]`` are nested deeper; each round takes the innermost away."""
    too_deep = b"[" * (most + 1)
    for _ in range(most):
        if too_deep in brackets:  # at once, where a round takes one pair of a million away
            return True
        outer = brackets.replace(b"[]", b"")
        if len(outer) == len(brackets):
            break
        brackets = outer
    # Of a text that is cut off, those stay that are never closed.
    return b"[]" in brackets or brackets.count(b"[") > most


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON value")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:60]!r} occurs twice")
    return mapping


def make_sharing_decoder() -> json.JSONDecoder:
    """Return a decoder that shares objects (`make_sharing_hook`)."""
    return json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=make_sharing_hook())


def make_sharing_hook() -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return what makes one object of small ones that are equal: none may be changed.

    It gets keys and values, and raises ValueError for a key that is there twice. Devices, specs
    and selectors of a cluster say the same thousands of times.
    """
    known: dict[bytes, dict[str, Any]] = {}
    misses: dict[str, int] = {}  # last key of objects -> how many in a row had none equal
    intern, dumps, empty = sys.intern, marshal.dumps, dict[str, Any]()

    def share(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if not pairs:
            return empty
        written, last = b"", pairs[-1][0]
        missed = misses.get(last, 0)
        if missed < _MAX_MISSES:
            for _, value in pairs:
                if value.__class__ is list and len(value) > _SHARED_ITEMS:
                    break
            else:
                # Unlike a tuple it tells 1, 1.0 and true apart, and reads what cannot be hashed.
                written = dumps(pairs, 0)
                found = known.get(written)
                if found is not None:
                    misses[last] = 0
                    return found
                misses[last] = missed + 1
        mapping: dict[str, Any] = {}
        for key, value in pairs:
            if key in _REPEATED and value.__class__ is str:
                value = intern(value)
            mapping[intern(key)] = value
        if len(mapping) != len(pairs):
            return _no_duplicates(pairs)
        if written and len(written) <= _SHARED_BYTES:
            if len(known) >= _MAX_SHARED:
                known.clear()  # what is frequent comes again
            known[written] = mapping
        return mapping

    return share


def share_parts(value: Any, share: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> Any:
    """Return a value in which equal small objects are one; ``share``: of `make_sharing_hook`."""
    if isinstance(value, dict):
        return share([(key, share_parts(item, share)) for key, item in value.items()])
    if isinstance(value, list):
        return [share_parts(item, share) for item in value]
    return value


DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
"""Decodes JSON that reads the same for everybody, from text whose bounds were checked."""
