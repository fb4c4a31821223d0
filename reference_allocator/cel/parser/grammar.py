"""The parser that lark makes of ``cel.lark``."""

from __future__ import annotations

import fcntl
import sys
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from platformdirs import user_cache_path


@cache
def build_parser(transformer: Any) -> Lark:
    """The LALR parser; ``transformer`` gets each rule's children, bottom-up and without recursion.

    Its tables take a third of a second to compute, more than all else that starts, so lark keeps
    them in the user's cache, one process at a time. A file that is damaged, or of another grammar,
    is written anew; where nothing can be written the tables are computed each time.
    """
    text = Path(__file__).with_name("cel.lark").read_text(encoding="utf-8")
    folder = user_cache_path("dra-conformance") / "cel"
    name = f"parser-{sys.version_info.major}.{sys.version_info.minor}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError:
        return _lark(text, transformer, False)
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _lark(text, transformer, str(folder / name))


def _lark(text: str, transformer: Any, kept: str | bool) -> Lark:
    return Lark(
        text,
        parser="lalr",
        start="expr",
        transformer=transformer,
        keep_all_tokens=True,
        maybe_placeholders=False,
        propagate_positions=False,
        cache=kept,
    )
