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
        """The id of its first process."""

    def is_alive(self) -> bool:
        """Return whether it runs."""

    def signal(self, number: int) -> None:
        """Send a signal; do nothing if it has ended."""

    def wait(self, seconds: float) -> bool:
        """Wait until it ends, at most so long; return whether it did."""


class Starter(Protocol):
    """Starts a driver."""

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        """Start it, with variables to add and a file for its output."""

    def with_boot_id(self, boot_id: Path) -> Starter | None:
        """Return a starter whose driver sees that file as the kernel's boot id; None: it cannot."""


@runtime_checkable
class WatchableStarter(Protocol):
    """A starter whose drivers can be made to tell their changes of files."""

    def announcing(self, socket: Path) -> Starter:
        """Return a starter of drivers that `announce` themselves at a socket (``launching.py``)."""


class CommandStarter:
    """Starts the driver with a command, in a process group of its own."""

    def __init__(self, command: Sequence[str], *, option: str = "--driver-command") -> None:
        """Look for the program. Raises UsageError: there is none, or it cannot be executed."""
        program = shutil.which(command[0]) if command else None
        if program is None:
            name = command[0] if command else ""
            raise UsageError(
                f"{option}: the program {name!r} does not exist or is not executable; give"
                " its path, or put it into PATH"
            )
        self.command = (str(Path(program).absolute()), *command[1:])
        self.boot_id: Path | None = None

    def announcing(self, socket: Path) -> Self:
        """Return the same command behind a program that makes it announce itself."""
        program = (sys.executable, "-ISs", launching.__file__, str(socket))
        return type(self)((*program, *self.command))

    def with_boot_id(self, boot_id: Path) -> CommandStarter | None:
        """Return a starter that uses a mount namespace, which takes root; None without it."""
        if not can_use_mount_namespaces():
            return None
        starter = copy.copy(self)
        starter.boot_id = boot_id
        return starter

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        """Start it where it finds the log's folder as the kubelet's root (`HOST_PATHS`).

        Raises UsageError: the system cannot execute it.
        """
        mounts = host_paths(log.parent)
        if self.boot_id is not None:
            mounts[BOOT_ID] = self.boot_id
        with log.open("ab") as output:
            try:
                return _Command(
                    subprocess.Popen(
                        (*bind_mount_command(mounts), *self.command),
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

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        """Send a signal to all of its group when it is to be killed, else to its first process."""
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


def count_files_and_threads(pid: int) -> dict[str, int]:
    """Return how many open files and threads a process and its session have (proc(5)), else 0."""
    counts = dict.fromkeys(("open files", "threads"), 0)
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            session = folder.joinpath("stat").read_text().rpartition(")")[2].split()[3]
            if str(pid) in (folder.name, session):
                counts["open files"] += sum(1 for _ in folder.joinpath("fd").iterdir())
                counts["threads"] += sum(1 for _ in folder.joinpath("task").iterdir())
    return counts


def last_words(log: Path) -> str:
    """Return the last line of a log that says something, for a message."""
    try:
        with log.open("rb") as opened:
            opened.seek(max(0, log.stat().st_size - LOG_TAIL))
            lines = opened.read(LOG_TAIL).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((one_line(line, 200) for line in reversed(lines) if line.strip()), "")


BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
HOST_PATHS: Final = {KUBELET_ROOT: ".", "/var/run/cdi": "cdi", "/etc/cdi": "etc-cdi"}
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


def can_use_mount_namespaces() -> bool:
    """Return whether this user may give a process a mount namespace."""
    return os.geteuid() == 0 and _has_namespaces()


@functools.cache
def _has_namespaces() -> bool:
    """Return whether root may on this machine, which in containers is mostly not so."""
    command = ("unshare", "--mount", "true")
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def host_paths(folder: Path) -> dict[str, Path]:
    """Return where a driver looks -> the folder of the check that it finds there; empty: none."""
    if not can_use_mount_namespaces():
        return {}
    return {
        host_path: folder / name
        for host_path, name in HOST_PATHS.items()
        if (folder / name).is_dir()
    }


def bind_mount_command(mounts: Mapping[str, Path]) -> tuple[str, ...]:
    """Return the beginning of a command whose rest finds other files there; empty for none."""
    if not mounts:
        return ()
    pairs = (word for host_path, source in mounts.items() for word in (str(source), host_path))
    return ("unshare", "--mount", "sh", "-c", _BIND, "sh", *pairs, "--")


def path_outside(path: str, folder: Path) -> str:
    """Return a path that a driver names, as it is seen outside of its mount namespace."""
    below = Path(path).is_relative_to(KUBELET_ROOT)
    outside_path = folder / Path(path).relative_to(KUBELET_ROOT) if below else Path(path)
    return str(outside_path) if below and outside_path.exists() else path
