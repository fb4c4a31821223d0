"""What it costs to start the programs, beside what it costs to start Python and pytest.

Run with ``python -m benchmarks.start``. Each command runs several times; the median of the
processor time (user and system, in seconds) goes to ``benchmarks/results/start.json``. A machine's
speed changes with its load, so what counts is the ratio to ``pytest --version`` in the same run.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conformance import __version__

RESULTS = Path(__file__).parent / "results" / "start.json"
BASE = "pytest --version"

_SUITE = (sys.executable, "-m", "conformance")
COMMANDS = {
    "python -c pass": (sys.executable, "-c", "pass"),
    BASE: (sys.executable, "-m", "pytest", "--version"),
    "pytest --version, without our plugin": (
        *(sys.executable, "-m", "pytest", "-p", "no:dra_conformance", "--version"),
    ),
    "--version": (*_SUITE, "--version"),
    "--help": (*_SUITE, "--help"),
    "run, one scenario on the reference": (*_SUITE, "run", "-k", "core/two-requests", "-o", "out"),
}


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for _ in range(rounds):  # one after the other, so that all meet the same load
            for name, command in COMMANDS.items():
                seconds[name].append(processor_seconds(command, Path(folder)))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    result: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "suite": __version__,
        "machine": {"processor": platform.machine(), "python": platform.python_version()},
        "rounds": rounds,
        "processor_seconds": {name: round(value, 3) for name, value in medians.items()},
        "times_pytest_version": {
            name: round(value / medians[BASE], 2) for name, value in medians.items()
        },
    }
    print(json.dumps(result, indent=2))
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def processor_seconds(command: tuple[str, ...], folder: Path) -> float:
    """User and system time of a command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
