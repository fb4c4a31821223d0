"""The driver's process: started with a command, stopped, killed; its log is kept in a file."""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from conformance.drivercheck import hostpaths, launching
from conformance.errors import UsageError
from conformance.text import one_line

LOG_TAIL = 2000  # Characters of a log that are read for a message.


class Process(Protocol):
    """A driver that was started."""

    def alive(self) -> bool:
        """Whether it runs."""

    def signal(self, number: int) -> None:
        """Send a signal; none if it has ended."""

    def wait(self, seconds: float) -> bool:
        """Whether it ended within the time."""


class Starter(Protocol):
    """Starts a driver."""

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        """Start it, with variables to add and a file for its output."""

    def rebooted(self, boot_id: Path) -> Starter | None:
        """One whose driver sees that file as the kernel's boot id; None if it cannot be shown."""


@runtime_checkable
class WatchableStarter(Protocol):
    """A starter whose drivers can be made to tell their changes of files."""

    def watched(self, socket: Path) -> Starter:
        """A starter of drivers that `announce` themselves at a socket (``launching.py``)."""


class CommandStarter:
    """Starts the driver with a command, in a process group of its own."""

    def __init__(self, command: Sequence[str], *, option: str = "--driver-command") -> None:
        """Look for the program. Raises UsageError: there is none, or it cannot be executed."""
        program = shutil.which(command[0]) if command else None
        if program is None:
            what = command[0] if command else ""
            raise UsageError(
                f"{option}: the program {what!r} does not exist or is not executable; give"
                " its path, or put it into PATH"
            )
        self.command = (str(Path(program).absolute()), *command[1:])
        self.boot_id: Path | None = None

    def watched(self, socket: Path) -> Self:
        """The same command behind a program that makes it announce itself."""
        program = (sys.executable, "-ISs", launching.__file__, str(socket))
        return type(self)((*program, *self.command))

    def rebooted(self, boot_id: Path) -> CommandStarter | None:
        """In a mount namespace of its own, which takes root."""
        if not hostpaths.can_be_shown():
            return None
        starter = copy.copy(self)
        starter.boot_id = boot_id
        return starter

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        """Start it where it finds the log's folder as the kubelet's root (`hostpaths`).

        Raises UsageError: the system cannot execute it.
        """
        shown = hostpaths.places(log.parent)
        if self.boot_id is not None:
            shown[hostpaths.BOOT_ID] = self.boot_id
        with log.open("ab") as output:
            try:
                return _Command(
                    subprocess.Popen(
                        (*hostpaths.showing(shown), *self.command),
                        env={**os.environ, **environment},
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
            except OSError as error:
                raise UsageError(f"{self.command[0]}: cannot be started: {error}") from None


class _Command:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def alive(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        """To all of its group when it is to be killed, else to its first process."""
        if number != signal.SIGKILL:
            self._process.send_signal(number)
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def wait(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def last_words(log: Path) -> str:
    """The last line of a log that says something, for a message."""
    try:
        with log.open("rb") as opened:
            opened.seek(max(0, log.stat().st_size - LOG_TAIL))
            lines = opened.read(LOG_TAIL).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((one_line(line, 200) for line in reversed(lines) if line.strip()), "")
