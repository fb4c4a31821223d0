"""The driver's benchmark runs, so that its numbers can be had at any time."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from benchmarks.idling import idle
from tests.programs import ended


def test_the_benchmark_reports_latencies(tmp_path: Path) -> None:
    output = tmp_path / "driver.json"
    options = ["--claims", "20", "--rounds", "2", "--idle-seconds", "0", "--output", str(output)]
    done = ended(
        [sys.executable, "-m", "benchmarks.driver", *options],
        cwd=Path(__file__).resolve().parents[2],
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    assert json.loads(done.stdout) == report
    for durability in ("with fsync", "without fsync"):
        for calls in ("one claim a call", "ten claims a call"):
            for what in ("prepare", "unprepare"):
                found = report[durability][calls][what]
                assert 0 < found["median_ms"] <= found["p95_ms"] <= found["max_ms"]
                assert found["claims_per_second"] > 0


@pytest.mark.needs_root
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="simulated GPUs get character devices")
def test_a_driver_that_idles_is_small_and_sleeps() -> None:
    found = idle(["t4x4"], 2.0, settle_seconds=1.0)
    assert 10 < found["memory_mib"] < 80
    assert found["processor_percent"] < 10
    assert 0 < found["wake_ups_per_second"] < 100
