"""How long prepare and unprepare take: ``python -m benchmarks.driver [--claims N] [--durable]``.

A simulated node, the real plugin behind its unix socket, claims from memory instead of an API
server: what is measured is gRPC, lock, checkpoint, CDI spec and fsync. One claim a call, as for
pods that start one after the other; then all claims in calls of ten.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from nvml_driver.core import DriverCore
from nvml_driver.kubeletapi.dra.v1 import api_pb2 as v1
from nvml_driver.kubeletapi.dra.v1 import api_pb2_grpc as v1_grpc
from nvml_driver.library import NvmlLibrary
from nvml_driver.options import DriverOptions
from nvml_driver.plugin import KubeletPlugin

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
    core = DriverCore(options, NvmlLibrary.simulated("t4x4"))
    plugin = KubeletPlugin(
        core, lambda _namespace, name: claims.get(name), plugins=root, registry=root
    )
    plugin.start()
    try:
        with grpc.insecure_channel(f"unix://{plugin.dra_socket}") as channel:
            stub: Any = v1_grpc.DRAPluginStub(channel)  # type: ignore[no-untyped-call]
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


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: median, 95th percentile, greatest."""
    ordered = sorted(seconds)
    at95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return {
        "median_ms": round(statistics.median(ordered) * 1000, 2),
        "p95_ms": round(at95 * 1000, 2),
        "max_ms": round(ordered[-1] * 1000, 2),
    }


def main() -> int:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", type=int, default=100)
    parser.add_argument("--durable", action="store_true", help="with fsync, as in production")
    options = parser.parse_args()
    claims = {f"c{n}": claim(n) for n in range(options.claims)}
    references = [
        v1.Claim(namespace="bench", name=f"c{n}", uid=f"uid-{n}") for n in range(options.claims)
    ]
    report: dict[str, Any] = {"claims": options.claims, "fsync": options.durable}
    with (
        tempfile.TemporaryDirectory(prefix="b") as folder,
        served(Path(folder), claims, options.durable) as stub,
    ):
        for size, name in ((1, "one claim a call"), (10, "ten claims a call")):
            batches = [references[at : at + size] for at in range(0, len(references), size)]
            report[name] = {
                what.lower(): summary([timed(stub, what, batch) for batch in batches])
                for what in ("Prepare", "Unprepare")
            }
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
