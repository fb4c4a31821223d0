"""Who a process is, read from /proc.

A pid alone is no identity: after a crash the number may belong to somebody else. So a process is
named by its pid, the kernel's start time and the boot it ran in, and processes that were started
but never written down are found by a mark in their environment.

psutil reads the rest of /proc. Its own identity of a process is not enough: its creation time moves
with the machine's clock, and a cluster may be stopped days later by another program.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import psutil

MARK = "DRA_CONFORMANCE_LOCAL_CLUSTER"
"""Environment variable that every process of a local cluster inherits; its state directory."""

POLL_SECONDS = 0.05
"""Pause between two looks at something that gives no event (an HTTP health endpoint, a file)."""

_PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """One process, for as long as the machine runs.

    ``start_time``: field 22 of /proc/PID/stat, in clock ticks since boot (proc_pid_stat(5)).
    """

    pid: int
    start_time: int
    boot_id: str

    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not, once all its threads ended.

        The first thread of a process that is killed may have ended before others, which still keep
        its sockets open.
        """
        state, threads, start_time = _stat(self.pid)
        return (
            (state not in ("", "Z", "X") or threads > 1)
            and start_time == self.start_time
            and boot_id() == self.boot_id
        )


_statuses: dict[Identity, int] = {}
"""How children of this program ended: the kernel reports it once."""


def boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity | None:
    """The identity of a running process, None where it is gone."""
    state, _, start_time = _stat(pid)
    return Identity(pid, start_time, boot_id()) if state else None


def is_alive(identity: Identity) -> bool:
    """Whether the process runs; collects its exit status where it was a child of ours."""
    with contextlib.suppress(ChildProcessError):  # started by an earlier program
        pid, status = os.waitpid(identity.pid, os.WNOHANG)
        if pid:
            _statuses[identity] = os.waitstatus_to_exitcode(status)
    return identity.alive()


def exit_status(identity: Identity) -> int | None:
    """How a process of ours ended (-9: by signal 9); None where another program was its parent."""
    return _statuses.get(identity)


def wait_gone(identity: Identity, timeout_seconds: float | None = None) -> bool:
    """Wait until the process has ended; False when the time (None: no limit) is over before."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return True
    try:
        if not is_alive(identity):
            return True  # ended, or the number is another process's by now
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(None if timeout_seconds is None else timeout_seconds * 1000)
    finally:
        os.close(descriptor)
    return not is_alive(identity)


def send(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to each process that still exists."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def command_name(pid: int) -> str:
    """Name of the program that a process runs, "" where it is gone."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).name()
    return ""


def children(pid: int, *, recursive: bool = False) -> list[int]:
    """Pids of the children of `pid`, and if wanted of theirs."""
    with contextlib.suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=recursive)]
    return []


def kill_all(find: Callable[[], Collection[int]], timeout_seconds: float) -> list[int]:
    """Kill what `find` finds until it finds nothing more; those that are left when time is over."""
    deadline = time.monotonic() + timeout_seconds
    while left := sorted(find()):
        if time.monotonic() > deadline:
            return left
        send(left, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    return []


def marked(state_dir: Path) -> list[int]:
    """Pids of processes that carry the mark of the cluster in `state_dir`, zombies left out."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # gone meanwhile, or another user's
            if process.environ().get(MARK) == str(state_dir):
                found.append(process.pid)
    return found


def in_cgroup(name: str) -> list[int]:
    """Pids of processes in the cgroup `name` ("/dra-1a2b") or below it, in any hierarchy."""
    found = []
    for pid in psutil.pids():
        try:
            lines = (_PROC / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            continue
        paths = [line.split(":", 2)[2] for line in lines]
        if any(path == name or path.startswith(name + "/") for path in paths):
            found.append(pid)
    return found


def mounts(pid: int | str = "self") -> list[tuple[Path, str]]:
    """Mount points as a process sees them, and the types of what is mounted there.

    Source: proc_pid_mountinfo(5).
    """
    found = []
    for line in (_PROC / str(pid) / "mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].encode().decode("unicode_escape")
        found.append((Path(point), right.split()[0]))
    return found


def mounts_below(directory: Path, pid: int | str = "self") -> list[Path]:
    """Mount points at or below a directory as a process sees them, the deepest first."""
    points = [point for point, _ in mounts(pid) if point.is_relative_to(directory)]
    return sorted(points, key=lambda point: len(point.parts), reverse=True)


def _stat(pid: int) -> tuple[str, int, int]:
    """State ("Z" for a zombie, "" where there is none), number of threads, start time."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return "", 0, 0
    # The command name is in parentheses and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[17]), int(fields[19])
