"""What a driver's process takes of its node while nothing happens."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.nvml_driver.stub_api import StubApi

SETTLE_SECONDS = 10.0


def idle(
    shown: Sequence[str], seconds: float, settle_seconds: float = SETTLE_SECONDS
) -> dict[str, Any]:
    """Memory, processor time and wake-ups of a driver that has published and is not called.

    Args:
        shown: a profile's name, and further options.
        seconds: how long to watch.
        settle_seconds: when to begin, from the first slice on: starting is not idling.
    """
    with tempfile.TemporaryDirectory(prefix="b") as folder:
        root = Path(folder)
        api = StubApi()
        command = [
            *(sys.executable, "-m", "nvml_driver", "run", "--node-name", "node"),
            *("--kubeconfig", str(api.kubeconfig(root)), "--cdi-root", str(root / "cdi")),
            *("--kubelet-plugins-directory-path", str(root / "p")),
            *("--kubelet-registrar-directory-path", str(root / "r")),
            *("--metrics-port", "0", "--healthcheck-port", "0", "--simulate", *shown),
        ]
        try:
            api.put("/api/v1/nodes/node", {"metadata": {"name": "node"}})
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
                try:
                    api.wait(lambda found: found.slices(), timeout=60)
                    time.sleep(settle_seconds)
                    return _watch(process.pid, seconds)
                finally:
                    process.terminate()
        finally:
            api.close()


def _watch(pid: int, seconds: float) -> dict[str, Any]:
    before, woken, began = _processor(pid), _wake_ups(pid), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return {
        "seconds": round(took),
        "memory_mib": round(_status(pid, "VmRSS") / 1024, 1),
        "threads": _status(pid, "Threads"),
        "processor_percent": round((_processor(pid) - before) / took * 100, 3),
        "wake_ups_per_second": round((_wake_ups(pid) - woken) / took, 1),
    }


def _processor(pid: int) -> float:
    """Seconds of processor time so far (proc(5), utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wake_ups(pid: int) -> int:
    """How often its threads have slept so far."""
    return sum(
        _field(path.read_text(), "voluntary_ctxt_switches")
        for path in Path(f"/proc/{pid}/task").glob("*/status")
    )


def _status(pid: int, name: str) -> int:
    return _field(Path(f"/proc/{pid}/status").read_text(), name)


def _field(status: str, name: str) -> int:
    return int(status.partition(f"\n{name}:")[2].split()[0])
