"""Runs any program with the simulated library in place, unmodified: it finds GPUs by NVML."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nvml_driver.errors import DriverError
from nvml_driver.simulated.build import build_library, default_cache_root
from nvml_driver.simulated.profile import Profile


def run_program(profile: Profile, command: Sequence[str]) -> int:
    """Return a program's exit status, 128 + N if signal N ended it, once it has ended.

    It and what it starts load the simulated ``libnvidia-ml.so.1`` and see one machine: a MIG
    device that one of them makes is there for the others.

    Raises DriverError: it cannot be started; NvmlUnavailableError: the library cannot be built.
    """
    folder = build_library(default_cache_root()).parent
    with tempfile.TemporaryDirectory(prefix="simulated-nvml-") as scratch:
        description = Path(scratch, "profile")
        description.write_bytes(profile.describe(state=Path(scratch, "state")))
        earlier_folders = os.environ.get("LD_LIBRARY_PATH", "")
        environment = {
            **os.environ,
            "NVML_SIMULATED_PROFILE": str(description),
            "LD_LIBRARY_PATH": ":".join(filter(None, (str(folder), earlier_folders))),
        }
        try:
            program = subprocess.Popen(command, env=environment)
        except OSError as error:
            raise DriverError(f"cannot start {command[0]}: {error.strerror}") from None
        return _wait(program)


def _wait(program: subprocess.Popen[bytes]) -> int:
    """Wait; who ends this process ends the program (Ctrl-C reaches both by itself)."""
    before = signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    interrupting = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = program.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, interrupting)
    return status if status >= 0 else 128 - status
