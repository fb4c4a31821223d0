"""What `audit --watch` keeps in memory while claims come and go for as long as one likes.

    python -m benchmarks.soak [--kubernetes 1.34] [--count 5000]

On a local control plane that this starts, ``fuzz`` makes and removes problems; the memory of the
audit beside it is looked at every ten seconds. What it keeps should grow with the cluster, which is
always of one size here, and not with time. The rate of ``fuzz`` is printed by itself.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import psutil

from localkube import LocalCluster, LocalOptions
from localkube.binaries.versions import KUBERNETES, full_version

_EVERY = 10.0
_SUITE = (sys.executable, "-m", "conformance")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code is that of ``fuzz``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kubernetes", default=KUBERNETES, help="version of the control plane")
    parser.add_argument("--count", default="5000", help="problems")
    parser.add_argument("--seed", default="soak")
    options = parser.parse_args(arguments)
    version = full_version(options.kubernetes)
    cluster = LocalCluster(LocalOptions(name="soak", kubernetes=version, nodes=0, persistent=True))
    cluster.up(lambda line: print(line, file=sys.stderr))
    where = ("--cluster", "local", "--name", "soak")
    asked = ("--count", options.count, "--seed", options.seed, "-o", "build/soak")
    try:
        with subprocess.Popen(
            [*_SUITE, "audit", *where, "--watch"], stdout=subprocess.PIPE, text=True
        ) as audit:
            began = time.monotonic()
            with subprocess.Popen([*_SUITE, "fuzz", "--target", "cluster", *where, *asked]) as fuzz:
                memory = _memory(audit.pid, fuzz)
            took = time.monotonic() - began
            audit.terminate()
            found, _ = audit.communicate()
    finally:
        cluster.down()
    quarter = max(1, len(memory) // 4)
    parts = [memory[first : first + quarter] for first in range(0, len(memory), quarter)][:4]
    told = ", ".join(f"{statistics.median(part):.0f}" for part in parts)
    lines = len(found.splitlines())
    print(f"Kubernetes {version}: {options.count} problems in {took:.0f} s")
    print(f"audit --watch: MiB in each quarter of the time: {told}; {lines} lines of findings")
    return fuzz.returncode


def _memory(pid: int, until: subprocess.Popen[bytes]) -> list[float]:
    process, found = psutil.Process(pid), []
    while True:
        try:
            until.wait(_EVERY)
        except subprocess.TimeoutExpired:
            found.append(process.memory_info().rss / 2**20)
            continue
        return found


if __name__ == "__main__":
    sys.exit(main())
