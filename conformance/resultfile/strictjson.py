"""JSON that reads the same for everybody.

Python takes ``NaN`` and, of a key that is there twice, the last; another reader takes the first. So
a line could say one thing to whoever checks it and another to whoever shows it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


def loads(text: bytes | str) -> Any:
    """A JSON document.

    Raises:
        ValueError: it is not JSON, or an object has a key twice.
        RecursionError: it is nested too deep.
    """
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON value")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:60]!r} is there twice")
    return found
