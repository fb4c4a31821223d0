"""The driver's benchmark runs, so that its numbers can be had at any time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_the_benchmark_reports_latencies() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.driver", "--claims", "20"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for calls in ("one claim a call", "ten claims a call"):
        for what in ("prepare", "unprepare"):
            found = report[calls][what]
            assert 0 < found["median_ms"] <= found["p95_ms"] <= found["max_ms"]
