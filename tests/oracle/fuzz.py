"""Runs both allocators on generated problems and stops at the first unexplained difference.

    python -m tests.oracle.fuzz --oracle build/oracle/allocate -n 2000 --seed 1

The seed and the number of a problem name it for good. What fails is made small and written as one
line of NDJSON, which `dra-conformance allocate` and the oracle both read.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from conformance.fuzz.shrink_json import shrink
from reference_allocator.gates import LATEST, MINORS
from tests.oracle.comparing import Comparison, compare
from tests.oracle.known_differences import KNOWN
from tests.oracle.older_minors import adapt
from tests.oracle.pinned import complaint_about_a_choice
from tests.oracle.problems import problem
from tests.oracle.upstream import Upstream, open_upstream

Json = dict[str, Any]
_EVERY = 20.0
"""Seconds between two lines about the progress."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when every difference is explained, 1 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--oracle", type=Path, required=True, help="program of ci/upstream/allocate"
    )
    parser.add_argument("-n", type=int, default=2000, help="how many problems")
    parser.add_argument("--kubernetes", choices=MINORS, default=LATEST, help="the oracle's minor")
    parser.add_argument("--seed", default="", help="default: a fresh one")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--timeout", default="1s", help="for upstream, per node")
    parser.add_argument(
        "--output", type=Path, default=Path("build/fuzz"), help="folder of failures"
    )
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a difference")
    options = parser.parse_args(arguments)
    seed = options.seed or secrets.token_hex(4)
    sys.stdout.write(f"seed {seed}, problems {options.first} to {options.first + options.n - 1}\n")
    with open_upstream(options.oracle, options.timeout) as upstream:
        counts, accepted, failed = _run(options, seed, upstream)
    _report(counts, accepted)
    return 1 if failed else 0


def _run(
    options: argparse.Namespace, seed: str, upstream: Upstream
) -> tuple[Counter[str], int, bool]:
    """How many problems of each kind, the answers that the checker accepted, whether one failed."""
    counts: Counter[str] = Counter()
    accepted = 0
    failed = False
    told = time.monotonic()
    for number in range(options.first, options.first + options.n):
        identifier = f"{seed}-{number}"
        question = problem(Random(identifier), identifier, odd=True)
        adapt(question, options.kubernetes)
        found = _ask(question, upstream, options.kubernetes)
        counts[found.kind] += 1
        accepted += found.accepted
        if found.failed:
            failed = True
            _save(options, question, found, upstream)
            if not options.keep_going:
                break
        if time.monotonic() - told > _EVERY:
            told = time.monotonic()
            done = f"{counts.total()} of {options.n}: {dict(counts)}"
            sys.stdout.write(f"{done}; {accepted} allocations accepted by the checker\n")
            sys.stdout.flush()
    return counts, accepted, failed


def _ask(question: Json, upstream: Upstream, kubernetes: str) -> Comparison:
    found = compare(question, upstream, kubernetes=kubernetes)
    if found.kind == "slow":  # The machine may have been busy with something else.
        found = compare(question, upstream, kubernetes=kubernetes)
    if not found.failed:
        complaint = complaint_about_a_choice(question, Random(question["id"]), upstream, kubernetes)
        if complaint:
            return replace(found, kind="unchecked", detail=complaint)
    return found


def _save(
    options: argparse.Namespace, question: Json, found: Comparison, upstream: Upstream
) -> None:
    folder: Path = options.output

    def fails(candidate: Json) -> bool:
        try:
            adapt(candidate, options.kubernetes)
        except KeyError:  # Shrinking took something away that every object has.
            return False
        again = _ask(candidate, upstream, options.kubernetes)
        return (again.kind, again.outcomes) == (found.kind, found.outcomes)

    # What is slow is asked again and again by shrinking, and is small as it is drawn.
    small = question if found.kind == "slow" else shrink(question, fails)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{question['id']}.ndjson"
    path.write_text(json.dumps(small) + "\n", encoding="utf-8")
    detail = _ask(small, upstream, options.kubernetes).detail
    sys.stdout.write(f"{found.kind}: {question['id']}, made small in {path}\n{detail}\n")
    sys.stdout.flush()


def _report(counts: Counter[str], accepted: int) -> None:
    sys.stdout.write(f"{counts.total()} problems; the checker accepted {accepted} allocations\n")
    for kind, count in sorted(counts.items()):
        sys.stdout.write(f"{count:8} {kind}\n")
    for known in KNOWN:
        if counts[f"known: {known.name}"]:
            sys.stdout.write(f"{known.name}: {known.reason}\n")


if __name__ == "__main__":
    sys.exit(main())
