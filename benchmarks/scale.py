"""How many pods with devices a second a control plane schedules, and how long claims wait.

    python -m benchmarks.scale [--nodes 100] [--pods 100] [--against 1.36] [--only "one device"]
    python -m benchmarks.scale --scheduler NAME --scheduler-command 'COMMAND ...'

On a local control plane that this starts, with hollow nodes of eight places each. Pods are made as
fast as eight connections can, ``--pods`` at a time, while the cluster is empty, half full, and
full but for them. A rate is pods over the seconds from the first request to the last pod that is
bound: the API server, the resourceclaim controller and the scheduler are in it, as in
kubernetes/perf-tests' clusterloader2 (scheduler_perf leaves the first two out). Every allocation is
judged by the reference at the end.

``--against`` gives the same to another minor's control plane in turns, ``--scheduler`` to another
scheduler beside the first; then what counts is the ratio, for times of one machine say nothing
about another. Results go to ``benchmarks/results/scale.json``, from which `make site` makes a
page; with ``--output`` they go there instead.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.planes import FILLS, Measured, plane
from benchmarks.workloads import PODS_ON_A_NODE, WORKLOADS
from localkube.binaries.versions import KUBERNETES, full_version

RESULTS = Path(__file__).parent / "results" / "scale.json"
HEAD = """# Pods with devices a second

Written by `python -m benchmarks.scale`: hollow nodes with eight places each, and a number of pods
at a time into a cluster that is empty, half full, and full but for them; medians of rounds in
turns. `pods/s` is from the first request to the last pod that is bound, p50 and p99 are seconds for
which a claim and its pod waited for devices, and a ratio is the first control plane's rate over the
other's. Each allocation was judged by the reference. The absolute numbers are of the machine that
ran it, on which etcd, API server, controllers, scheduler and the suite share the cores.
"""
SECTION = """
## {nodes} nodes

On {date}, `{command}`: {cores} cores, load {load} at the end.

```
{table}
```

{costs}
"""

Batches = Mapping[str, Mapping[str, Mapping[str, list[Measured]]]]
"""Workload -> contender -> fill -> what was measured."""


def rows(measured: Batches, contenders: Sequence[str]) -> Iterator[str]:
    """The table and its plot, within 80 columns; the first one's times, and ratios to the others.

    A ratio of rates above 1: the first is faster.
    """
    first, *others = contenders
    ratios = "".join(f"{'/ ' + other[-9:]:>12}" for other in others)
    yield f"{first:<28} {'fill':<6}{'pods/s':>7} {'p50':>6} {'p99':>6}{ratios}"
    rates = [_median(one) for of in measured.values() for one in of[first].values() if one]
    most = max(rates, default=1)
    for name, of in measured.items():
        for fill, batches in of[first].items():
            label = name if fill == next(iter(of[first])) else ""
            if not batches:
                yield f"{label:<28} {fill:<6} not in 600 s"
                continue
            rate = _median(batches)
            told = "".join(_ratio(rate, of[other][fill]) for other in others)
            bar = "" if others else "  " + "#" * max(1, round(20 * rate / most))
            waits = f"{_wait(batches, 'p50'):>6} {_wait(batches, 'p99'):>6}"
            yield f"{label:<28} {fill:<6}{rate:>7.1f} {waits}{told}{bar}"


def costs(measured: Batches, contender: str, pods: int) -> str:
    """Milliseconds of processor time for a pod, and most memory, by part."""
    batches = [one for of in measured.values() for many in of[contender].values() for one in many]
    if not batches:
        return ""
    parts = batches[0].cpu
    spent = {name: statistics.median(one.cpu[name] for one in batches) / pods for name in parts}
    asked = statistics.median(one.requests for one in batches)
    most = {name: max(one.memory[name] for one in batches) for name in parts}
    return "\n".join(
        (
            "ms of a processor for a pod: "
            + ", ".join(f"{name} {1000 * one:.0f}" for name, one in spent.items()),
            "most MiB of memory: " + ", ".join(f"{name} {one}" for name, one in most.items()),
            f"requests of the suite for a pod: {asked / pods:.1f}",
        )
    )


def _wait(batches: Sequence[Measured], percentile: str) -> str:
    found = [getattr(one.latency, percentile) for one in batches if one.latency is not None]
    return f"{statistics.median(found):.2f}" if found else "-"


def _ratio(rate: float, others: Sequence[Measured]) -> str:
    return f"{rate / _median(others):>11.2f}x" if others else "> 600 s".rjust(12)


def _median(batches: Sequence[Measured]) -> float:
    return statistics.median(one.pods_per_second for one in batches)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=100, help="hollow nodes, at most 5000")
    parser.add_argument(
        "--pods", type=int, default=100, help="of a batch, at most a quarter of all"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kubernetes", default=KUBERNETES, help="version of the control plane")
    parser.add_argument("--against", action="append", default=[], help="another one, repeatable")
    parser.add_argument("--scheduler", default="", help="another one beside the first")
    parser.add_argument("--scheduler-command", type=shlex.split, help="that starts it")
    parser.add_argument("--fill", action="append", choices=FILLS, help="repeatable; all")
    parser.add_argument("--only", action="append", default=[], help="a workload, repeatable")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    chosen = [one for one in WORKLOADS if not options.only or one.name in options.only]
    if not 1 <= options.nodes <= 5000 or not chosen:
        parser.error(f"1 to 5000 nodes; workloads are {', '.join(one.name for one in WORKLOADS)}")
    room = options.nodes * PODS_ON_A_NODE
    if not 1 <= options.pods <= room // 4:
        parser.error(f"--pods {options.pods}: at most a quarter of the {room} that have room")
    if bool(options.scheduler) != bool(options.scheduler_command):
        parser.error("--scheduler and --scheduler-command go together")
    fills = [one for one in FILLS if one in (options.fill or FILLS)]
    versions = [full_version(one) for one in (options.kubernetes, *options.against)]
    command = tuple(options.scheduler_command or ()) or None
    with ExitStack() as stack:
        contenders = {
            version: (stack.enter_context(plane(version, options.nodes, command)), "")
            for version in versions
        }
        if options.scheduler:
            contenders[options.scheduler] = (contenders[versions[0]][0], options.scheduler)
        measured: Batches = {
            workload.name: {name: {fill: [] for fill in fills} for name in contenders}
            for workload in chosen
        }
        for workload in chosen:
            for number in range(options.rounds):
                for name, (one, scheduler) in contenders.items():
                    print(f"{workload.name}: round {number + 1}, {name}", file=sys.stderr)
                    batches = one.measure(workload, options.pods, scheduler, fills)
                    for fill, batch in batches.items():
                        measured[workload.name][name][fill].append(batch)
    table = "\n".join(rows(measured, list(contenders)))
    spent = costs(measured, versions[0], options.pods)
    print(f"{table}\n{spent}")
    about = {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "nodes": options.nodes,
        "command": shlex.join(["python", "-m", "benchmarks.scale", *(arguments or sys.argv[1:])]),
        "table": table,
        "costs": spent,
        "measured": TypeAdapter(Batches).dump_python(measured, mode="json"),
    }
    if options.output is not None:
        options.output.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        return 0
    sizes = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    sizes[str(options.nodes)] = about
    RESULTS.write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")
    return 0


def page() -> str:
    """The page about what was measured, by the number of nodes."""
    sizes = json.loads(RESULTS.read_text(encoding="utf-8"))
    return HEAD + "".join(SECTION.format(**sizes[size]) for size in sorted(sizes, key=int))


if __name__ == "__main__":
    sys.exit(main())
