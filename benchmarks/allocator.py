"""Our allocator against those of two Kubernetes minors on the same problems, in one run.

Run with ``make bench`` (``python -m benchmarks.allocator``); needs the go command. Sets, the first
two for each of the minors and by its rules:

- typical: what clusters ask every day; the aim is a geometric mean of at most 0.45, none beyond
  0.9;
- cold: the first decision on each of 1,000 nodes, whose devices nobody has asked for yet; the aim
  is at most 1;
- hard: problems without a solution, on which upstream tries all combinations until its 10 s are
  over; the aim is at most 50 ms each;
- scale: one decision after one event in clusters of 1,000 to 100,000 devices; the time of a
  decision must not grow, building must be linear, memory below 1 GiB.

Selectors by themselves are measured by ``benchmarks.cel``.

A time is the best of several repetitions of one decision (cold: the median node), on both sides
without reading and writing JSON, without making the deadline, and without letting go of the answer
before (the best has no collection of garbage in it, in Go either). What counts are ratios (ours /
upstream): times of one machine say nothing about another.
Results go to ``benchmarks/results/allocator.json``.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.problems import (
    CLAUSES,
    DRIVER,
    FEATURES,
    claim,
    exactly,
    gpu,
    hard,
    slice_of,
    typical,
)
from reference_allocator.allocator import Allocator
from reference_allocator.api import Node, ResourceClaim
from reference_allocator.features import Features
from reference_allocator.gates import LATEST
from reference_allocator.index import Index
from reference_allocator.wire import answer_allocate
from tests.oracle.upstream import Upstream, ask, comparable, open_upstream

Json = dict[str, Any]
ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "allocator.json"
UPSTREAM = ROOT / "ci" / "upstream"
MINORS = ("1.37", "1.38")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes down; 1 where an aim is missed, 0 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--repeat", type=int, default=1000, help="decisions of which the best counts"
    )
    parser.add_argument("--timeout", default="10s", help="for upstream, per node")
    parser.add_argument("--sizes", type=int, nargs="*", default=[12, 24, 48, 96])
    parser.add_argument("--scale", type=int, help="only this size, as JSON (used by itself)")
    parser.add_argument("--cold", type=int, help="selectors' first evaluation on as many nodes")
    options = parser.parse_args(arguments)
    if options.cold:
        sys.stdout.write(json.dumps(cold(options.cold), indent=1) + "\n")
        return 0
    if options.scale:
        sys.stdout.write(json.dumps(scale(options.scale)) + "\n")
        return 0
    daily: Json = {}
    first: Json = {}
    for minor in MINORS:
        with _open_minor(minor, options.timeout) as upstream:
            rows = [_compare(item, upstream, minor, options.repeat) for item in typical().values()]
            daily[minor] = _with_mean(rows)
            cold_nodes = typical()["1000 nodes x 8, one claim"]
            first[minor] = _compare(cold_nodes, upstream, minor, 1, cold=True)
    with _open_minor(LATEST, options.timeout) as upstream:
        unsolvable = [
            _compare(item, upstream, LATEST, 20, upstream_repeat=2)
            for item in hard(tuple(options.sizes)).values()
        ]
    result: Json = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": _machine(),
        "versions": _versions(),
        "typical": daily,
        "cold": first,
        "hard": unsolvable,
        "scale": [_scale_apart(devices) for devices in (1_000, 10_000, 100_000)],
    }
    result["missed"] = missed(result)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for text in (*_lines(result), *(f"MISSED {aim}" for aim in result["missed"])):
        sys.stdout.write(text + "\n")
    return 1 if result["missed"] else 0


def _open_minor(minor: str, timeout: str) -> AbstractContextManager[Upstream]:
    """The program of a minor, built if need be."""
    subprocess.run([UPSTREAM / "build", minor, "allocate"], check=True)
    return open_upstream(_program_of(minor), timeout)


def _program_of(minor: str) -> Path:
    return ROOT / "build" / "oracle" / f"allocate-{minor}"


def _compare(
    problem: Json,
    upstream: Upstream,
    minor: str,
    repeat: int,
    *,
    upstream_repeat: int | None = None,
    cold: bool = False,
) -> Json:
    """Both answers and times of one problem: of its nodes the mean, of first decisions the median.

    A collection of garbage between first decisions does not change the median.
    """
    times_each = 1 if cold else max(10, repeat // len(problem["nodes"]))
    middle = statistics.median if cold else statistics.fmean
    theirs = ask(upstream, {**problem, "repeat": upstream_repeat or times_each})
    gc.collect()
    line = json.dumps({**problem, "repeat": times_each})
    ours = json.loads(answer_allocate(line, kubernetes=minor))
    times = {
        name: middle(node["ns"] for node in answer["nodes"]) / 1000
        for name, answer in (("ours", ours), ("upstream", theirs))
    }
    gave_up = any(node["outcome"] == "timeout" for node in theirs["nodes"])
    return {
        "problem": problem["id"],
        "ratio": round(times["ours"] / times["upstream"], 6),
        "ours_us_per_node": round(times["ours"], 2),
        "upstream_us_per_node": round(times["upstream"], 2),
        "answers": "upstream timed out" if gave_up else _same(ours, theirs),
    }


def _same(ours: Json, theirs: Json) -> str:
    return "same" if comparable(ours) == comparable(theirs) else "DIFFERENT"


def _scale_apart(devices: int) -> Json:
    """`scale` in a process of its own, whose memory says something."""
    command = [sys.executable, "-m", "benchmarks.allocator", "--scale", str(devices)]
    finished = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    measured: Json = json.loads(finished.stdout)
    return measured


def scale(devices: int) -> Json:
    """Building a cluster of eight devices per node, and decisions after a claim's event."""
    nodes = devices // 8
    slices = [slice_of(f"node-{n}", [gpu(index) for index in range(8)]) for n in range(nodes)]
    expression = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    classes = [{"metadata": {"name": DRIVER}, "spec": {"selectors": [expression]}}]
    gc.freeze()  # What stands for the input is no work of the garbage collector.
    before, start = _memory(), time.perf_counter()
    index = Index(Features.from_dict(FEATURES), slices, classes, [])
    built = time.perf_counter() - start
    allocator = Allocator(index)
    wanted = [ResourceClaim.from_dict(claim("wanted", exactly(1)))]
    spread = [Node(f"node-{number * nodes // 100}") for number in range(100)]
    for node in spread:  # Warm, as a scheduler that runs is.
        allocator.allocate(node, wanted)
    taken: list[float] = []
    gc.collect()
    for round_number in range(20):
        for number, node in enumerate(spread):
            event = _allocated(f"e{number}", node.name, f"gpu-{round_number % 8}")
            start = time.perf_counter()
            index.put_claim(event)
            outcome = allocator.allocate(node, wanted)
            taken.append(time.perf_counter() - start)
            if outcome.kind != "allocated":
                raise RuntimeError(f"{node.name}: {outcome}")
    taken.sort()
    return {
        "devices": devices,
        "build_s": round(built, 3),
        "build_us_per_device": round(built / devices * 1e6, 2),
        "decision_after_event_us": round(taken[len(taken) // 2] * 1e6, 2),
        "memory_mib": round((_memory() - before) / 2**20, 1),
    }


def cold(nodes: int) -> Json:
    """Milliseconds of CPU of the first decision on each node: no selector was evaluated yet.

    Eight devices on each node and no one that suits, so that every device is asked. The medians
    of several claims; the selectors' share is what is more than with the second equal claim.
    """
    slices = [slice_of(f"node-{n}", [gpu(index) for index in range(8)]) for n in range(nodes)]
    expression = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    classes = [{"metadata": {"name": DRIVER}, "spec": {"selectors": [expression]}}]
    allocator = Allocator(Index(Features.from_dict(FEATURES), slices, classes, []))
    everywhere = [Node(f"node-{number}") for number in range(nodes)]

    def decisions(selector: str) -> float:
        wanted = [ResourceClaim.from_dict(claim("wanted", exactly(1, selector)))]
        gc.collect()
        start = time.process_time()
        for node in everywhere:
            if allocator.allocate(node, wanted).kind == "allocated":
                raise RuntimeError(f"{node.name}: a device suits")
        return (time.process_time() - start) * 1000

    decisions("device.driver == ''")  # what is made once per node and device
    rows: Json = {}
    for name, clauses in (("driver only", "true"), ("three clauses", CLAUSES)):
        times: list[tuple[float, float]] = []
        for number in range(5):
            selector = f'{clauses} && device.driver == "{number}"'
            times.append((decisions(selector), decisions(selector)))
        first, second = (statistics.median(column) for column in zip(*times, strict=True))
        rows[name] = {"cold_ms": round(first, 1), "warm_ms": round(second, 1)}
        rows[name]["ratio"] = round(first / second, 2)
    return {"nodes": nodes, "devices": 8 * nodes, "decisions_on_all_nodes": rows}


def _allocated(name: str, pool: str, device: str) -> ResourceClaim:
    result = {"request": "r0", "driver": DRIVER, "pool": pool, "device": device}
    allocation = {"devices": {"results": [result]}}
    return ResourceClaim.from_dict(claim(name, exactly(1)) | {"status": {"allocation": allocation}})


def _memory() -> int:
    """The memory of this process in bytes, at the moment (or its peak, where that is not told)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


def _with_mean(rows: list[Json]) -> Json:
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))
    return {
        "geometric_mean_ratio": round(mean, 4),
        "worst_ratio": max(row["ratio"] for row in rows),
        "problems": rows,
    }


def missed(result: Json) -> list[str]:
    """The aims that a result does not reach."""
    found: list[str] = []
    for minor, part in result["typical"].items():
        mean, worst = (part[key] for key in ("geometric_mean_ratio", "worst_ratio"))
        if mean > 0.45:
            found.append(f"typical, {minor}: geometric mean {mean}")
        if worst > 0.9:
            found.append(f"typical, {minor}: one problem {worst}")
        if result["cold"][minor]["ratio"] > 1:
            found.append(f"cold, {minor}: {result['cold'][minor]['ratio']}")
    found += [
        f"hard: {row['problem']} {row['ours_us_per_node'] / 1000:.0f} ms"
        for row in result["hard"]
        if row["ours_us_per_node"] > 50_000
    ]
    rows = [*result["hard"], *result["cold"].values()]
    rows += [row for part in result["typical"].values() for row in part["problems"]]
    found += [
        f"{row['problem']}: {row['answers']}" for row in rows if row["answers"] == "DIFFERENT"
    ]
    small, *_, large = result["scale"]
    # A cluster a hundred times as large misses the processor's caches more often, and no more.
    if large["decision_after_event_us"] > 3 * small["decision_after_event_us"]:
        found.append(f"scale: {large['decision_after_event_us']} us at {large['devices']} devices")
    if large["memory_mib"] > 1024:
        found.append(f"scale: {large['memory_mib']} MiB at {large['devices']} devices")
    return found


def _machine() -> Json:
    return {
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "system": platform.system(),
        "load": round(os.getloadavg()[0], 1),
    }


def _versions() -> Json:
    """The versions of Python, and of Go and the library in the program of each minor."""
    versions: Json = {"python": platform.python_version()}
    for minor in MINORS:
        command = ["go", "version", "-m", str(_program_of(minor))]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        modules = {row[1]: row[2] for row in map(str.split, listed.splitlines()) if len(row) > 2}
        library = "dynamic-resource-allocation"
        go = listed.splitlines()[0].split()[-1]
        versions[minor] = {"go": go, library: modules[f"k8s.io/{library}"]}
    return versions


def _lines(result: Json) -> list[str]:
    lines: list[str] = []
    parts = {f"typical, {minor}": part["problems"] for minor, part in result["typical"].items()}
    parts |= {f"cold, {minor}": [row] for minor, row in result["cold"].items()}
    parts["hard"] = result["hard"]
    for name, rows in parts.items():
        lines.append(f"{name}: ours / upstream")
        lines += [f"  {row['ratio']:9.4f}  {row['problem']}  {row['answers']}" for row in rows]
    for minor, part in result["typical"].items():
        lines.append(f"typical, {minor}: {part['geometric_mean_ratio']} as a geometric mean")
    lines.append("scale: devices, building, one decision after one event, memory")
    lines += [
        f"  {row['devices']:7}  {row['build_us_per_device']} us/device"
        f"  {row['decision_after_event_us']} us  {row['memory_mib']} MiB"
        for row in result["scale"]
    ]
    return lines


if __name__ == "__main__":
    sys.exit(main())
