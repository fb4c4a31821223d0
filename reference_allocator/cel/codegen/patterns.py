"""Constant patterns of ``matches``, as functions of the text.

Asking RE2 costs more than all the rest of a usual selector, and usual patterns, such as ``^GPU-``
or ``^(A|H)100$``, stand for a few words. Those are compared as text; all others go to RE2, as
bytes, because it then need not tell where in the text it found something.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any, Final

from reference_allocator.cel.library.strings import compile_regex

_WORD: Final = r"[\w \-/:,=@~#%&;!<>]"
"""A character that stands for itself in a pattern."""
_PATTERN: Final = re.compile(
    rf"(\^?)((?:{_WORD}|\({_WORD}*(?:\|{_WORD}*)*\))*)(\$?)", flags=re.ASCII
)
_PART: Final = re.compile(rf"{_WORD}+|\(([^)]*)\)", flags=re.ASCII)
_MAX_WORDS: Final = 32

Matcher = Callable[[Any], bool]


def matcher(pattern: str) -> Matcher:
    """Whether a text has a match of a valid pattern; anything but a text raises some exception."""
    found = _PATTERN.fullmatch(pattern)
    words = None if found is None else _words(found[2])
    if found is None or words is None:
        search = compile_regex(pattern).search
        return lambda text: search(text.encode()) is not None
    # Only texts have these methods with such arguments.
    if found[1] and found[3]:
        return lambda text: text.startswith(words) and text in words
    if found[1]:
        return lambda text: bool(text.startswith(words))
    if found[3]:
        return lambda text: bool(text.endswith(words))
    return lambda text: any(text.find(word) >= 0 for word in words)


def _words(body: str) -> tuple[str, ...] | None:
    """All texts that a pattern without anchors stands for, None for too many."""
    choices = [
        [part[0]] if part[1] is None else part[1].split("|") for part in _PART.finditer(body)
    ]
    count = 1
    for choice in choices:
        count *= len(choice)
        if count > _MAX_WORDS:
            return None
    return tuple("".join(parts) for parts in product(*choices))
