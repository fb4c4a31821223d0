"""The loop in which ours and a program of others are asked the same random questions.

What a question is, how the two answers are compared and what is said of a difference is the
caller's; a seed and a number name a question for good.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

DIFFERENT: Final = "different"
"""The kind of what nothing explains."""

_EVERY: Final = 20.0
"""Seconds between two lines about the progress."""

Compare = Callable[[str, range, Counter[str]], bool]
"""Compares the questions of a seed with these numbers, counts what came of each by kind, and tells
whether something is wrong."""


def make_parser(description: str, program: str, what: str, count: int) -> argparse.ArgumentParser:
    """Return a parser with the options that all comparisons have.

    Args:
        description: the first line is shown.
        program: where the program of others comes from.
        what: the questions, as a plural.
        count: how many they are by default.
    """
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--oracle", type=Path, required=True, help=f"program of {program}")
    parser.add_argument("-n", type=int, default=count, help=f"how many {what}")
    parser.add_argument("--seed", default="", help="default: a fresh one")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a difference")
    return parser


def run_comparison(options: argparse.Namespace, what: str, size: int, compare: Compare) -> int:
    """Ask all questions, ``size`` at a time; say how it goes, and how many are of which kind.

    Returns 1 where something is wrong, 0 otherwise. Stops there, unless told to keep going.
    """
    seed = options.seed or secrets.token_hex(4)
    last = options.first + options.n
    sys.stdout.write(f"seed {seed}, {what} {options.first} to {last - 1}\n")
    counts: Counter[str] = Counter()
    failed, told = False, time.monotonic()
    for start in range(options.first, last, size):
        numbers = range(start, min(start + size, last))
        failed |= compare(seed, numbers, counts)
        if failed and not options.keep_going:
            break
        if time.monotonic() - told > _EVERY:
            told = time.monotonic()
            done = numbers.stop - options.first
            kinds = {kind: count for kind, count in counts.items() if not kind.startswith(" ")}
            sys.stdout.write(f"{done} of {options.n}: {kinds}\n")
        sys.stdout.flush()
    for kind, count in sorted(counts.items()):
        sys.stdout.write(f"{count:8} {kind}\n")
    return 1 if failed else 0
