"""The driver's process: started with a command, stopped, killed; its log is kept in a file.

A driver's DaemonSet mounts the kubelet's root and the CDI folders from its node (hostPath), and
many drivers name them in their code and nowhere else. In a mount namespace of its own, which takes
root, the driver finds the check's folders there. One that the machine lacks is made, and stays.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, Self, runtime_checkable

from conformance.drivercheck import launching
from kube.base.errors import UsageError
from kube.base.text import one_line
from kube.kubelet.plugins import KUBELET_ROOT

LOG_TAIL = 2000  # Characters of a log that are read for a message.


class Process(Protocol):
    """A driver that was started."""

    @property
    def pid(self) -> int:
        """Of its first process."""

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
        if not can_be_shown():
            return None
        starter = copy.copy(self)
        starter.boot_id = boot_id
        return starter

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        """Start it where it finds the log's folder as the kubelet's root (`PLACES`).

        Raises UsageError: the system cannot execute it.
        """
        shown = places(log.parent)
        if self.boot_id is not None:
            shown[BOOT_ID] = self.boot_id
        with log.open("ab") as output:
            try:
                return _Command(
                    subprocess.Popen(
                        (*showing(shown), *self.command),
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

    @property
    def pid(self) -> int:
        return self._process.pid

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


def held(pid: int) -> dict[str, int]:
    """How many open files and threads a process and its session have (proc(5)); else none."""
    found = dict.fromkeys(("open files", "threads"), 0)
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            session = folder.joinpath("stat").read_text().rpartition(")")[2].split()[3]
            if str(pid) in (folder.name, session):
                found["open files"] += sum(1 for _ in folder.joinpath("fd").iterdir())
                found["threads"] += sum(1 for _ in folder.joinpath("task").iterdir())
    return found


def last_words(log: Path) -> str:
    """The last line of a log that says something, for a message."""
    try:
        with log.open("rb") as opened:
            opened.seek(max(0, log.stat().st_size - LOG_TAIL))
            lines = opened.read(LOG_TAIL).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((one_line(line, 200) for line in reversed(lines) if line.strip()), "")


BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
PLACES: Final = {KUBELET_ROOT: ".", "/var/run/cdi": "cdi", "/etc/cdi": "etc-cdi"}
"""Where a driver looks -> what it finds there, below the folder of the check."""

_BIND: Final = """\
while [ "$1" != -- ]; do
    [ -e "$2" ] || mkdir -p "$2"
    mount --bind "$1" "$2" || exit 1
    shift 2
done
shift
exec "$@"
"""


def can_be_shown() -> bool:
    """Whether this user may give a process a mount namespace."""
    return os.geteuid() == 0 and _has_namespaces()


@functools.cache
def _has_namespaces() -> bool:
    """Whether a root of this machine may, which in containers is mostly not so."""
    command = ("unshare", "--mount", "true")
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def places(folder: Path) -> dict[str, Path]:
    """Where a driver looks -> the folder of the check in that place, where it can be shown."""
    if not can_be_shown():
        return {}
    return {place: folder / name for place, name in PLACES.items() if (folder / name).is_dir()}


def showing(found: Mapping[str, Path]) -> tuple[str, ...]:
    """Start of a command whose rest finds other files in these places; empty for none."""
    if not found:
        return ()
    pairs = (word for place, source in found.items() for word in (str(source), place))
    return ("unshare", "--mount", "sh", "-c", _BIND, "sh", *pairs, "--")


def outside(path: str, folder: Path) -> str:
    """A path that a driver names, as it is seen outside of its mount namespace."""
    below = Path(path).is_relative_to(KUBELET_ROOT)
    own = folder / Path(path).relative_to(KUBELET_ROOT) if below else Path(path)
    return str(own) if below and own.exists() else path
