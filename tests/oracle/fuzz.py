"""Runs both allocators on generated problems and stops at the first unexplained difference.

    python -m tests.oracle.fuzz --oracle build/oracle/allocate -n 2000 --seed 1

The seed and the number of a problem name it for good. What fails is made small and written as one
line of NDJSON, which `dra-conformance allocate` and the oracle both read.
"""

from __future__ import annotations

import argparse
import json
import sys
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
from tests.random_comparison import make_parser, run_comparison

Json = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when every difference is explained, 1 otherwise."""
    parser = make_parser(__doc__, "ci/upstream/allocate", "problems", 2000)
    parser.add_argument("--kubernetes", choices=MINORS, default=LATEST, help="the oracle's minor")
    parser.add_argument("--timeout", default="1s", help="for upstream, per node")
    parser.add_argument(
        "--output", type=Path, default=Path("build/fuzz"), help="folder of failures"
    )
    parser.add_argument("--hunt", action="store_true", help="draw values at the API's limits")
    options = parser.parse_args(arguments)
    known: Counter[str] = Counter()
    with open_upstream(options.oracle, options.timeout) as upstream:

        def compare_problem(seed: str, numbers: range, counts: Counter[str]) -> bool:
            (number,) = numbers
            identifier = f"{seed}-{number}"
            question = problem(Random(identifier), identifier, odd=True, at_limits=options.hunt)
            adapt(question, options.kubernetes)
            found = _ask(question, upstream, options.kubernetes)
            counts[found.kind] += 1
            counts["  allocations accepted by the checker"] += found.accepted
            known.update([found.kind])
            if found.failed:
                _save(options, question, found, upstream)
            return found.failed

        failed = run_comparison(options, "problems", 1, compare_problem)
    for item in KNOWN:
        if known[f"known: {item.name}"]:
            sys.stdout.write(f"{item.name}: {item.reason}\n")
    return failed


def _ask(question: Json, upstream: Upstream, kubernetes: str) -> Comparison:
    found = compare(question, upstream, kubernetes=kubernetes)
    # The machine may have been busy with something else.
    if found.kind == "slow" or "timeout" in found.outcomes:
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


if __name__ == "__main__":
    sys.exit(main())
