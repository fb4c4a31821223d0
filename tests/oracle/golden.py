"""Writes the golden answers: problems and what the real allocator says to them.

    python -m tests.oracle.golden --oracle build/oracle/allocate

A problem is taken if its answers show something that no other shows, so that some hundred of them
cover what many thousand would; those with a known difference are left out. `found.in.ndjson` holds
small ones that once failed; they are kept as they are, and only their answers are written.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Hashable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.oracle.judge import judge
from tests.oracle.problems import problem
from tests.oracle.upstream import Upstream, comparable

Json = dict[str, Any]
FOLDER = Path(__file__).parent / "golden"
_LONGEST = 8000
"""Bytes of the longest problem that is taken."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the files anew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--oracle", type=Path, required=True, help="program of ci/upstream/allocate"
    )
    parser.add_argument("--tried", type=int, default=4000, help="how many problems are looked at")
    parser.add_argument("--taken", type=int, default=300, help="how many of them are kept at most")
    options = parser.parse_args(arguments)
    with Upstream([options.oracle]) as upstream:
        _write("problems", _choose(upstream, options.tried, options.taken), upstream)
        _write("found", read("found.in"), upstream)
    return 0


def read(name: str) -> list[Json]:
    """The lines of a golden file."""
    text = (FOLDER / f"{name}.ndjson").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _choose(upstream: Upstream, tried: int, taken: int) -> list[Json]:
    candidates: list[tuple[Json, set[Hashable]]] = []
    for number in range(tried):
        question = problem(Random(f"golden-{number}"), f"golden-{number}")
        if len(json.dumps(question)) > _LONGEST or judge(question, upstream).kind != "same":
            continue
        candidates.append((question, _shows(question, upstream.ask(json.dumps(question)))))
    seen: set[Hashable] = set()
    chosen: list[Json] = []
    # First those that show much at once.
    for question, shown in sorted(candidates, key=lambda item: -len(item[1])):
        if len(chosen) < taken and not shown <= seen:
            seen |= shown
            chosen.append(question)
    return sorted(chosen, key=lambda item: int(item["id"].partition("-")[2]))


def _shows(question: Json, answer: Json) -> set[Hashable]:
    """What is worth having once: kinds of errors, fields of results together, rules together."""
    shown: set[Hashable] = set()
    asked = _words(question["claims"])
    for node in answer["nodes"]:
        error = re.sub(
            r"[a-z0-9.-]+\.example\.com\S*|claim-\d|\br\d\b|\bs\d\b|\d+", "_", node.get("error", "")
        )
        shown.add((node["outcome"], error[-60:]))
        if node["outcome"] == "allocated":
            fields = sorted({key for item in _results(node) for key in item})
            drivers = sorted({item["driver"] for item in _results(node)})
            shown.add((tuple(fields), *drivers))
            shown.add((len(question["claims"]), len(_results(node)), tuple(sorted(asked & _RULES))))
        else:
            shown.add((node["outcome"], tuple(sorted(asked & _RULES))))
    return shown


_RULES = {
    "firstAvailable",
    "adminAccess",
    "matchAttribute",
    "distinctAttribute",
    "capacity",
    "derivedAttributes",
    "All",
}


def _words(value: object) -> set[str]:
    return set(re.findall(r"\w+", json.dumps(value)))


def _results(node: Json) -> list[Json]:
    return [item for each in node["allocations"] for item in each["devices"].get("results") or ()]


def _write(name: str, questions: list[Json], upstream: Upstream) -> None:
    answers = [comparable(upstream.ask(json.dumps(question))) for question in questions]
    for suffix, lines in (("in", questions), ("out", answers)):
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (FOLDER / f"{name}.{suffix}.ndjson").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{name}: {len(questions)} problems\n")


if __name__ == "__main__":
    sys.exit(main())
