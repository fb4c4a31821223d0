"""JSON that reads the same for everybody, from files that anybody may have written.

Python takes ``NaN`` and, of a key that is there twice, the last; another reader takes the first. So
one file could say different things to different readers.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from kube.base.errors import UsageError
from kube.base.files import read_regular


def loads(text: bytes | str) -> Any:
    """A JSON document. Raises ValueError or RecursionError."""
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)


def read_object(path: Path, most: int) -> dict[str, Any]:
    """The JSON object in a regular file of at most so many bytes, also when it is unpacked (gzip).

    Raises UsageError: it cannot be read or is not one; with ``file:line`` and what is wrong.
    """
    try:
        document = loads(_unpacked(read_regular(path, most), most))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; check the path") from None
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
    if not isinstance(document, dict):
        raise UsageError(f"{path}: $: must be an object")
    return document


def _unpacked(data: bytes, most: int) -> bytes:
    """Raises zlib.error: it is damaged, cut off, or larger than that."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    unpacking = zlib.decompressobj(wbits=31)
    unpacked = unpacking.decompress(data, most + 1)
    if len(unpacked) > most:
        raise zlib.error(f"it is larger than {most >> 20} MiB")
    if not unpacking.eof:
        raise zlib.error("it is cut off")
    return unpacked


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON value")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:60]!r} occurs twice")
    return found
