"""Asks the allocators that are here the same questions, and keeps what came of it for the page.

    make allocators

Each is asked the vectors of its minor and random questions, at level `fits`. A program that is not
built is left out; what was kept of it stays, with its date. What an allocator answers otherwise
than when it was asked before, in this version or an older one, is printed; a new version takes the
place of the older one in the file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ci.allocators.changes import describe_changes, find_predecessor
from conformance.allocators.check import Checker
from conformance.allocators.features import features_of
from conformance.allocators.program import Program
from conformance.allocators.questions import VECTORS, AskedQuestion, draw_questions, read_questions
from conformance.allocators.record import CheckHeader
from conformance.allocators.report import ALL, CheckResult
from kube.slices import is_allocated

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / "ci/allocators/results.json"
PROGRAMS: Final = ROOT / "build/oracle"
Json = dict[str, Any]


@dataclass(frozen=True)
class Implementation:
    """An allocator and how its program is asked.

    Attributes:
        name: of the project, and which of its allocators.
        kubernetes: the minor whose rules it claims.
        program: its file below build/oracle, and arguments.
        place: how nodes are asked about; empty: as the question says.
    """

    name: str
    version: str
    kubernetes: str
    program: tuple[str, ...]
    place: str = ""

    @property
    def key(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"


def _library(minor: str, channel: str = "") -> Implementation:
    named = channel or "as the scheduler chooses"
    arguments = ("-timeout", "5s", *(("-allocator", channel) if channel else ()))
    return Implementation(
        f"kube-scheduler's library, {named}",
        f"of {minor}",
        minor,
        (f"allocate-{minor}", *arguments),
    )


_KARPENTER: Final = ("karpenter", "-timeout", "2s")
IMPLEMENTATIONS: Final = (
    *(_library(minor) for minor in ("1.34", "1.35", "1.36", "1.37", "1.38")),
    *(_library("1.37", channel) for channel in ("stable", "incubating", "experimental")),
    Implementation(
        "Volcano, the library of its plugin", "v1.15.0", "1.35", ("volcano", "-timeout", "5s")
    ),
    Implementation("Karpenter, existing nodes", "v1.15.0", "1.37", _KARPENTER, "published"),
    Implementation("Karpenter, nodes to be", "v1.15.0", "1.37", _KARPENTER, "template"),
    Implementation("Kueue, quota of devices by class", "v0.19.0", "1.36", ("kueue",)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Asks all, prints a line for each, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "-n", type=int, default=1000, help="how many random questions; 0 keeps what came of them"
    )
    parser.add_argument("--seed", default="allocators")
    parser.add_argument("only", nargs="*", help="part of the names of those to ask")
    options = parser.parse_args(arguments)
    kept: Json = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    keys = [item.key for item in IMPLEMENTATIONS]
    for item in IMPLEMENTATIONS:
        key = item.key
        if options.only and not any(word in key for word in options.only):
            continue
        if not (PROGRAMS / item.program[0]).exists():
            sys.stdout.write(f"{key}: build/oracle/{item.program[0]} is not built\n")
            continue
        vectors = read_questions(VECTORS, item.kubernetes)
        if options.n == 0 and key not in kept:
            parser.error(f"-n 0: no random questions were asked of {key}")
        drawn = list(draw_questions(item.kubernetes, options.seed, 0, options.n))
        before = find_predecessor(kept, item.name, key, keys)
        now = {
            "kubernetes": item.kubernetes,
            "date": datetime.now(UTC).date().isoformat(),
            "vectors": _ask(item, vectors, small=0),
            "random": _ask(item, drawn, small=30) if drawn else kept[key]["random"],
            "seed": options.seed,
        }
        counts = {part: now[part]["counts"] for part in ("vectors", "random")}
        sys.stdout.write(f"{key}: {json.dumps(counts)}\n")
        if before is not None:
            old_key, old = before
            for change in describe_changes(old, now):
                sys.stdout.write(f"  since {old_key}, {old['date']}: {change}\n")
            del kept[old_key]
        kept[key] = now
        order = {name: place for place, name in enumerate(keys)}
        kept = dict(sorted(kept.items(), key=lambda entry: order.get(entry[0], len(order))))
        sys.stdout.flush()
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


def _ask(item: Implementation, questions: Sequence[AskedQuestion], *, small: int) -> Json:
    """What came of the questions, in numbers, and each kind of difference with an example."""
    header = CheckHeader(
        program=[item.program[0]], kubernetes=item.kubernetes, small=small, timeout=10
    )
    place = {"place": item.place} if item.place else {}
    asked = [
        AskedQuestion(each.number, each.question | place)
        for each in questions
        if _can_be(each.question, item.place)
    ]
    with Program([PROGRAMS / item.program[0], *item.program[1:]], header.timeout) as program:
        checker = Checker(program, header)
        result = CheckResult(header, list(checker.check(asked)))
    counts = result.count_features()
    return {
        "counts": counts[ALL].model_dump(by_alias=True, exclude={"median", "worst"}),
        "unsupported": sum(
            bool(record.unsupported) or record.has("unsupported") for record in result.records
        ),
        "wrong": [record.id for record in result.records if record.differs] if not small else [],
        "features": {
            name: row.wrong_yes + row.wrong_no
            for name, row in counts.items()
            if name != ALL and row.wrong_yes + row.wrong_no
        },
        "differences": [
            {
                "kind": each.smallest.kind,
                "features": each.smallest.vector.features,
                "sentence": each.smallest.vector.sentence,
                "questions": len(each.cases),
            }
            for each in result.group_differences()
        ],
    }


def _can_be(question: Json, place: str) -> bool:
    """Whether nodes of a question may be to be made: what is not there is not in use or updated."""
    pods = (question, *question.get("following", ()))
    given = any(is_allocated(item) for pod in pods for item in pod["claims"])
    updating = "updating" in features_of(question)
    return place != "template" or not (question.get("allocated") or given or updating)


if __name__ == "__main__":
    sys.exit(main())
