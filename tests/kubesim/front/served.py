"""``dra-conformance cluster up --reference`` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Served:
    """One that runs."""

    process: subprocess.Popen[str]
    kubeconfig: Path


@contextmanager
def served(state: Path, *options: str) -> Iterator[Served]:
    """Start one, and end it if it still runs."""
    # Where a shell has started the tests in the background, SIGINT is ignored, also by children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = ("conformance", "cluster", "up", "--reference", "--name", "test", *options)
    with serving_module(state, *command) as served:
        yield served


@contextmanager
def serving_module(state: Path, *arguments: str) -> Iterator[Served]:
    """Start a module of Python that serves and says where, and end it if it still runs."""
    with subprocess.Popen(
        (sys.executable, "-m", *arguments),
        env=os.environ | {"XDG_STATE_HOME": str(state)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("export KUBECONFIG="), line
            yield Served(process, Path(line.removeprefix("export KUBECONFIG=").strip()))
        finally:
            process.terminate()
