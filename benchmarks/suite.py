"""How much time the suite itself takes, beside what its targets take.

Run with ``make bench`` (``python -m benchmarks.suite``). It measures

- the whole reference run in one process, after start;
- on a real local control plane with a node: the suite's own share of each scenario's time, with 1,
  2 and 4 scenarios at once. Own time is wall time less the time spent inside calls to the target.
  Beside it, the processor time of the whole process, which has HTTP, TLS and watches in it too;
- the ten shortest allocation scenarios on a running local control plane, cleanup verified, one
  after the other and eight at once.

Medians of several rounds; numbers of one machine say nothing about another, so the result names
the machine and the versions. Results go to ``benchmarks/results/suite.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from benchmarks.timing import TimedTarget
from conformance import __version__
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.result import RunResult
from conformance.results.events.scenario import Outcome
from conformance.scenario.loader import LoadedScenario, load_scenarios
from conformance.seam.scope import Target
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened, open_target

RESULTS = Path(__file__).parent / "results" / "suite.json"


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-cluster", action="store_true", help="only the reference")
    parser.add_argument("--binaries", type=Path)
    arguments = parser.parse_args()
    scenarios = load_scenarios()
    result: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "suite": __version__,
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "rounds": arguments.rounds,
        "scenarios": len(scenarios),
        "reference": on_reference(scenarios, arguments.rounds),
    }
    if not arguments.no_cluster:
        options = TargetOptions(
            target="cluster", cluster="local", name="bench", binaries=arguments.binaries
        )
        with open_target(options, lambda line: print(line, file=sys.stderr)) as opened:
            result["kubernetes"] = opened.capabilities.kubernetes_version
            result["cluster"] = on_cluster(scenarios, opened, arguments.rounds)
    print(json.dumps(result, indent=2))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def on_reference(scenarios: Sequence[LoadedScenario], rounds: int) -> dict[str, Any]:
    """Seconds of a whole run in one process, each round on a target of its own."""
    seconds = []
    for number in range(rounds):
        with open_target(TargetOptions()) as opened:
            seconds.append(timed(lambda: run(scenarios, opened, f"bench-{number}")))  # noqa: B023
    return {"run_seconds": spread(seconds), "aim_seconds": 2.0}


def on_cluster(scenarios: Sequence[LoadedScenario], opened: Opened, rounds: int) -> dict[str, Any]:
    """Own share with 1, 2 and 4 scenarios at once, and the ten shortest."""
    measured: dict[str, Any] = {"own_share": {}, "cpu_share": {}}
    shortest: list[LoadedScenario] = []
    for workers in (1, 2, 4):
        shares, processor, walls = [], [], []
        for number in range(max(1, rounds // 2)):
            start, used = time.perf_counter(), time.process_time()
            target = TimedTarget(opened.target)
            run_id = f"bench-w{workers}-{number}"
            timed_target = replace(opened, target=cast("Target", target))
            result = run(scenarios, timed_target, run_id, workers)
            walls.append(time.perf_counter() - start)
            used = time.process_time() - used
            total = sum(item.seconds for item in result.finished)
            target.waited.pop(f"dra-{run_id}", None)  # the run's own scope, for its classes
            waited = sum(target.waited.values())
            shares.append((total - waited) / total)
            processor.append(used / total)
            if not shortest:
                by_time = {item.scenario.id: item.seconds for item in result.finished}
                allocation = [i for i in scenarios if i.scenario.spec.tier == "allocation"]
                shortest = sorted(allocation, key=lambda item: by_time[item.id])[:10]
        measured["own_share"][f"workers_{workers}"] = spread(shares)
        measured["cpu_share"][f"workers_{workers}"] = spread(processor)
        measured.setdefault("run_seconds", {})[f"workers_{workers}"] = spread(walls)
    measured["aim_own_share"] = 0.05
    for workers in (1, 8):
        seconds = [
            timed(lambda: run(shortest, opened, f"bench-s{workers}-{number}", workers))  # noqa: B023
            for number in range(rounds)
        ]
        measured.setdefault("ten_shortest_seconds", {})[f"workers_{workers}"] = spread(seconds)
    measured["aim_ten_shortest_seconds"] = 5.0
    return measured


def run(
    scenarios: Sequence[LoadedScenario], opened: Opened, run_id: str, workers: int = 1
) -> RunResult:
    """One run; a scenario that ran and did not pass makes the measurement worthless."""
    setup = Setup(run_id, opened)
    result = run_suite(scenarios, setup, (), workers=workers)
    fine = {Outcome.PASSED, Outcome.SKIPPED}  # skipped: what the target does not have
    wrong = [item for item in result.finished if item.outcome not in fine]
    if wrong or result.left:
        text = "; ".join(f"{item.scenario.id}: {item.message}" for item in wrong)
        raise SystemExit(f"not measured: {text} {result.left}")
    return result


def timed(action: Callable[[], object]) -> float:
    """Seconds of wall time that an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


if __name__ == "__main__":
    main()
