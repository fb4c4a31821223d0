"""Writes the golden answers: problems and what the real allocator says to them.

    python -m tests.oracle.golden --oracle build/oracle/allocate

`problems`: one is taken if its answers show something that no other shows, so that some hundred of
them cover what many thousand would. `rules`: some for each rule that decides them
(`tests.oracle.knobs`) and for each error; their ids name these. Problems with a known difference
are left out. `found` holds small ones that once failed, and `kubernetes-1.38` one for each rule
that 1.38 changed; they stay as they are, only their answers are written.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.oracle.comparing import compare
from tests.oracle.errors import ERRORS, shown
from tests.oracle.knobs import KNOBS, decides, ours
from tests.oracle.problems import problem
from tests.oracle.upstream import Upstream, ask, comparable, open_upstream

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
    parser.add_argument("--tried", type=int, default=8000, help="how many problems are looked at")
    parser.add_argument("--taken", type=int, default=300, help="how many of them are kept at most")
    parser.add_argument("--each", type=int, default=1, help="how many problems for each rule")
    parser.add_argument(
        "only",
        nargs="*",
        help="problems, rules, found, or kubernetes-1.38 (with the oracle of 1.38 alone)",
    )
    options = parser.parse_args(arguments)
    with open_upstream(options.oracle) as upstream:
        if not options.only or "problems" in options.only:
            _write("problems", _choose(upstream, options.tried, options.taken), upstream)
        if not options.only or "rules" in options.only:
            _write("rules", _for_each_rule(upstream, options.tried, options.each), upstream)
        if not options.only or "found" in options.only:
            _write("found", read("found.in"), upstream)
        if "kubernetes-1.38" in options.only:
            _write("kubernetes-1.38", read("kubernetes-1.38.in"), upstream)
    return 0


def read(name: str) -> list[Json]:
    """The lines of a golden file."""
    text = (FOLDER / f"{name}.ndjson").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _choose(upstream: Upstream, tried: int, taken: int) -> list[Json]:
    candidates: list[tuple[Json, set[Hashable]]] = []
    for number in range(tried):
        question = problem(Random(f"golden-{number}"), f"golden-{number}")
        if len(json.dumps(question)) > _LONGEST or compare(question, upstream).kind != "same":
            continue
        candidates.append((question, _shows(question, ask(upstream, question))))
    seen: set[Hashable] = set()
    chosen: list[Json] = []
    # First those that show much at once.
    for question, shows in sorted(candidates, key=lambda item: -len(item[1])):
        if len(chosen) < taken and not shows <= seen:
            seen |= shows
            chosen.append(question)
    return sorted(chosen, key=lambda item: int(item["id"].partition("-")[2]))


def _for_each_rule(upstream: Upstream, tried: int, each: int) -> list[Json]:
    """Problems that rules decide or that end in errors, until there are so many for each."""
    missing = Counter(dict.fromkeys((*KNOBS, *ERRORS), each))
    chosen: list[Json] = []
    for number in range(tried):
        question = problem(Random(f"rule-{number}"), "")
        if len(json.dumps(question)) > _LONGEST or compare(question, upstream).kind != "same":
            continue
        answer = ours(question)
        errors = set(shown(answer))
        names = [
            name
            for name in +missing
            if (decides(name, question, answer) if name in KNOBS else name in errors)
        ]
        if names:
            missing.subtract(names)
            chosen.append({**question, "id": f"rule-{number}: {', '.join(names)}"})
        if not +missing:
            break
    for name in +missing:
        sys.stdout.write(f"no problem for: {name}\n")
    return chosen


def _shows(question: Json, answer: Json) -> set[Hashable]:
    """What is worth having once: kinds of errors, fields of results together, rules together."""
    found: set[Hashable] = set()
    asked = _words(question["claims"])
    for node in answer["nodes"]:
        error = re.sub(
            r"[a-z0-9.-]+\.example\.com\S*|claim-\d|\br\d\b|\bs\d\b|\d+", "_", node.get("error", "")
        )
        found.add((node["outcome"], error[-60:]))
        if node["outcome"] == "allocated":
            fields = sorted({key for item in _results(node) for key in item})
            drivers = sorted({item["driver"] for item in _results(node)})
            found.add((tuple(fields), *drivers))
            found.add((len(question["claims"]), len(_results(node)), tuple(sorted(asked & _RULES))))
        else:
            found.add((node["outcome"], tuple(sorted(asked & _RULES))))
    return found


_RULES = set(
    """
    firstAvailable adminAccess matchAttribute distinctAttribute capacity derivedAttributes All
""".split()
)


def _words(value: object) -> set[str]:
    return set(re.findall(r"\w+", json.dumps(value)))


def _results(node: Json) -> list[Json]:
    return [item for each in node["allocations"] for item in each["devices"].get("results") or ()]


def _write(name: str, questions: list[Json], upstream: Upstream) -> None:
    answers = [comparable(ask(upstream, question)) for question in questions]
    for suffix, lines in (("in", questions), ("out", answers)):
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (FOLDER / f"{name}.{suffix}.ndjson").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{name}: {len(questions)} problems\n")


if __name__ == "__main__":
    sys.exit(main())
