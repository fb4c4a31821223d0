"""``dra-conformance cluster up --reference`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = (sys.executable, "-m", "conformance", "cluster")


class Served:
    """One that runs."""

    def __init__(self, state: Path, process: subprocess.Popen[str], kubeconfig: Path) -> None:
        self.state, self.process, self.kubeconfig = state, process, kubeconfig

    def cluster(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command about it, in another process."""
        return subprocess.run(
            (*COMMAND, *arguments, "--name", "test"),
            env=os.environ | {"XDG_STATE_HOME": str(self.state)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@contextmanager
def served(state: Path, *options: str) -> Iterator[Served]:
    """Start one, and end it if it still runs."""
    with subprocess.Popen(
        (*COMMAND, "up", "--reference", "--name", "test", *options),
        env=os.environ | {"XDG_STATE_HOME": str(state)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("export KUBECONFIG="), line
            yield Served(state, process, Path(line.removeprefix("export KUBECONFIG=").strip()))
        finally:
            process.terminate()
