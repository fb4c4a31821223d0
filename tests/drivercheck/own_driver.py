"""Our own driver, started in a tenth of the time: forked from a process that has imported it."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from conformance.drivercheck.launching import announce
from conformance.drivercheck.process import Process

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["nvml_driver.cli", "nvml_driver.running", "tests.mutants.real_driver.faults"]
)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class OwnDriver:
    """A starter of our driver on simulated NVML, with a fault or shape of tests.mutants."""

    def __init__(self, fault: str = "none", *options: str) -> None:
        self._fault = fault
        self._options = options or ("--simulate", "t4x4")
        self._socket = ""

    def announcing(self, socket: Path) -> OwnDriver:
        found = OwnDriver(self._fault, *self._options)
        found._socket = str(socket)
        return found

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        arguments = (self._fault, self._options, dict(environment), log, self._socket)
        process = _CONTEXT.Process(target=_run, args=arguments, daemon=True)
        process.start()
        return _Forked(process)

    def with_boot_id(self, boot_id: Path) -> OwnDriver:
        """Itself: our driver writes lost specs again, whichever boot it is."""
        return self


class _Forked:
    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def signal(self, number: int) -> None:
        if self._process.is_alive():
            # It may have ended, and the forkserver is yet to say so.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid or 0, number)

    def wait(self, seconds: float) -> bool:
        self._process.join(seconds)
        return not self._process.is_alive()


def _run(
    fault: str, options: tuple[str, ...], environment: dict[str, str], log: Path, socket: str
) -> None:
    if socket:
        announce(socket)
    from nvml_driver.cli import main
    from tests.mutants.real_driver.answering import SHAPES
    from tests.mutants.real_driver.faults import FAULTS
    from tests.mutants.real_driver.remembering import NEXT_VERSIONS

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.environ.update(environment)
    sys.argv = ["nvml-dra-driver", "run", *options]
    ({**SHAPES, **NEXT_VERSIONS}.get(fault) or FAULTS[fault].put_in)()
    _wait_briefly()
    main()


def _wait_briefly() -> None:
    """The driver ends when NVML's wait for events has: in up to five seconds."""
    from nvml_driver.health.monitor import HealthMonitor

    original = HealthMonitor.__init__

    def init(self: HealthMonitor, *args: Any, **named: Any) -> None:
        original(self, *args, **{**named, "wait_seconds": 0.1})

    HealthMonitor.__init__ = init  # type: ignore[method-assign]
