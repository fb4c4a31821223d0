"""What the driver costs: ``python -m benchmarks.driver [--claims N] [--rounds N]``.

How long prepare and unprepare take: a simulated node, the real plugin behind its unix socket,
claims from memory instead of an API server; so what is measured is gRPC, lock, checkpoint, CDI
spec and, as in production, fsync. One claim a call, as for pods that start one after the other;
then all claims in calls of ten.

What it takes while nothing happens: ``nvml-dra-driver run`` beside an API server that only
listens; memory, processor time, and how often it wakes up.

Medians of several rounds; results go to ``benchmarks/results/driver.json`` with machine and
versions, without which they say nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc

from benchmarks.idling import idle
from conformance import __version__
from kube.kubelet import dra_v1_pb2 as v1
from kube.kubelet.rpc import make_stub as stub_of
from nvml_driver.core import DriverCore
from nvml_driver.kubelet.plugin import KubeletPlugin
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions

Json = dict[str, Any]
RESULTS = Path(__file__).parent / "results" / "driver.json"
DRIVER = "gpu.nvidia.com"


def claim(number: int) -> dict[str, Any]:
    """An allocated claim; admin access, so that 100 claims can use the GPUs of one node."""
    result = {
        "driver": DRIVER,
        "pool": "node",
        "device": f"gpu-{number % 4}",
        "request": "gpu",
        "adminAccess": True,
    }
    return {
        "metadata": {"name": f"c{number}", "namespace": "bench", "uid": f"uid-{number}"},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


@contextmanager
def served(root: Path, claims: dict[str, dict[str, Any]], durable: bool) -> Iterator[Any]:
    """A running plugin's stub."""
    options = DriverOptions(
        node_name="node",
        cdi_root=root / "cdi",
        state_dir=root / "state",
        device_nodes="declare",
        durable=durable,
    )
    core = DriverCore(options, NvmlLibrary.load_simulated("t4x4"))
    plugin = KubeletPlugin(
        core, lambda _namespace, name: claims.get(name), plugins=root, registry=root
    )
    plugin.start()
    try:
        with grpc.insecure_channel(f"unix://{plugin.dra_socket}") as channel:
            stub: Any = stub_of(v1, channel)
            yield stub
    finally:
        plugin.stop(grace=0)


def timed(stub: Any, what: str, batch: Sequence[v1.Claim]) -> float:
    """Seconds that one call took; all its claims must succeed."""
    request = getattr(v1, f"Node{what}ResourcesRequest")(claims=batch)
    began = time.perf_counter()
    answer = getattr(stub, f"Node{what}Resources")(request, timeout=45)
    took = time.perf_counter() - began
    errors = [entry.error for entry in answer.claims.values() if entry.error]
    if errors or len(answer.claims) != len(batch):
        raise SystemExit(f"{what} failed: {errors[:3]}")
    return took


def summary(rounds: Sequence[Sequence[float]]) -> dict[str, float]:
    """Milliseconds: median, 95th percentile and greatest call of a round; of these the medians."""

    def of_rounds(statistic: Callable[[list[float]], float]) -> float:
        return round(statistics.median(statistic(sorted(calls)) for calls in rounds) * 1000, 2)

    return {
        "median_ms": of_rounds(statistics.median),
        "p95_ms": of_rounds(lambda calls: calls[min(len(calls) - 1, int(len(calls) * 0.95))]),
        "max_ms": of_rounds(lambda calls: calls[-1]),
    }


def latencies(count: int, rounds: int, *, durable: bool) -> Json:
    """All claims prepared and unprepared: one a call, then ten a call; each round anew."""
    claims = {f"c{n}": claim(n) for n in range(count)}
    references = [v1.Claim(namespace="bench", name=f"c{n}", uid=f"uid-{n}") for n in range(count)]
    found: Json = {}
    for size, name in ((1, "one claim a call"), (10, "ten claims a call")):
        batches = [references[at : at + size] for at in range(0, count, size)]
        calls: dict[str, list[list[float]]] = {"Prepare": [], "Unprepare": []}
        for _ in range(rounds):
            with (
                tempfile.TemporaryDirectory(prefix="b") as folder,
                served(Path(folder), claims, durable) as stub,
            ):
                for what, times in calls.items():
                    times.append([timed(stub, what, batch) for batch in batches])
        found[name] = {what.lower(): summary(times) for what, times in calls.items()}
        for what, times in calls.items():
            per_second = statistics.median(count / sum(one) for one in times)
            found[name][what.lower()]["claims_per_second"] = round(per_second)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print JSON and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--claims", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--idle-seconds", type=float, default=60, help="0: leave idling out")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    result: Json = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "system": platform.system(),
            "load": round(os.getloadavg()[0], 1),
        },
        "versions": {
            "suite": __version__,
            "python": platform.python_version(),
            "grpcio": version("grpcio"),
            "nvidia-ml-py": version("nvidia-ml-py"),
        },
        "claims": options.claims,
        "rounds": options.rounds,
        "with fsync": latencies(options.claims, options.rounds, durable=True),
        "without fsync": latencies(options.claims, options.rounds, durable=False),
    }
    if options.idle_seconds:
        result["idle"] = {
            " ".join(shown): idle(shown, options.idle_seconds)
            for shown in (["t4x4"], ["b200x8"], ["h100-80x8", "--dynamic-mig"])
        }
    text = json.dumps(result, indent=1)
    options.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
