"""Suggest what was probably meant: most mistakes in names are one letter."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_LISTED = 12
"""More names than this say nothing in a message."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like ``name``, None if none is like it."""
    found = difflib.get_close_matches(name, sorted(set(known)), n=1, cutoff=0.6)
    return found[0] if found else None


def hint(name: str, known: Iterable[str], none: str = "none") -> str:
    """``did you mean X?``, or what is known at all; ``none`` where nothing is."""
    names = sorted(set(known))
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near}?"
    if len(names) > MAX_LISTED:
        return "no known name is like it"
    return f"known: {', '.join(names) or none}"
