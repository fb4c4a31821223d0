"""Our allocator beside Kubernetes' and Karpenter's, on the same questions, in one run.

    ci/upstream/build 1.37 allocate; ci/allocators/build karpenter
    python -m benchmarks.others

Each program measures its own decisions, without reading, writing and the making of a deadline, and
is asked three times in turn; the best counts. The first table has the time for a node as a ratio to
ours, and the aims are at most 0.40 of upstream's and 0.03 of Karpenter's as geometric means; the
second asks for one device more than there are, in milliseconds, of which ours needs at most 50.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.problems import claim, exactly, gpu, line, slice_of, typical
from conformance.allocators.program import Program

Json = dict[str, Any]
ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "others.json"
_ROUNDS = 3
_MOST_NODES = 100
_AIMS = {"upstream": 0.40, "karpenter": 0.03}
"""Program -> the most that ours may take of its time."""
_MOST_MICROSECONDS = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes down; 1 where an aim is missed, 0 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=30, help="decisions whose best counts")
    parser.add_argument("--sizes", type=int, nargs="*", default=[8, 10, 16, 24])
    options = parser.parse_args(arguments)
    oracles = ROOT / "build/oracle"
    commands: dict[str, list[str | Path]] = {
        "ours": [sys.executable, "-m", "conformance", "allocate"],
        "upstream": [oracles / "allocate-1.37"],
        "karpenter": [oracles / "karpenter", "-timeout", "5s"],
    }
    programs = {name: Program(command, 30) for name, command in commands.items()}
    usual = [item for item in typical().values() if len(item["nodes"]) <= _MOST_NODES]
    rows = [_measure(item | {"repeat": options.repeat}, programs) for item in usual]
    crowded = [_measure(_one_more_than(size), programs) for size in options.sizes]
    for program in programs.values():
        program.close()
    means = {
        name: round(math.exp(sum(math.log(row[name] / row["ours"]) for row in rows) / len(rows)), 2)
        for name in programs
    }
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "times of ours, geometric mean": means,
        "typical, microseconds for a node": rows,
        "one device too few, microseconds": crowded,
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        ratios = ", ".join(f"{name} {row[name] / row['ours']:.1f}" for name in programs)
        sys.stdout.write(f"{row['problem']}: {row['ours']:.1f} us; times of it: {ratios}\n")
    sys.stdout.write(f"geometric mean: {means}\n")
    for row in crowded:
        times = ", ".join(f"{name} {row[name] / 1000:.2f} ms" for name in programs)
        sys.stdout.write(f"{row['problem']}: {times} {row['gave up']}\n")
    missed = [name for name, most in _AIMS.items() if 1 / means[name] > most]
    missed += [row["problem"] for row in crowded if row["ours"] > _MOST_MICROSECONDS]
    for name in missed:
        sys.stdout.write(f"MISSED {name}\n")
    return 1 if missed else 0


def _one_more_than(size: int) -> Json:
    """A claim for one device more than a node has."""
    published = [slice_of("node-0", [gpu(index) for index in range(size)])]
    wanted = [claim("c", exactly(size + 1))]
    return line(f"{size + 1} of {size}", published, wanted) | {"repeat": 1}


def _measure(question: Json, programs: Mapping[str, Program]) -> Json:
    """Microseconds for a node by program, the best of some rounds; and which programs gave up."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    gave_up: set[str] = set()
    for _ in range(_ROUNDS):
        for name, program in programs.items():
            if name in gave_up:
                continue
            nodes = json.loads(program.ask(question))["nodes"]
            times[name].append(sum(node["ns"] for node in nodes) / len(nodes) / 1000)
            gave_up |= {name for node in nodes if node["outcome"] == "timeout"}
    best = {name: round(min(found), 2) for name, found in times.items()}
    return {"problem": question["id"], **best, "gave up": sorted(gave_up)}


if __name__ == "__main__":
    sys.exit(main())
