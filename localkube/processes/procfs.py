"""The processes, cgroups and mounts of a local cluster, read from /proc.

Processes that were started but never written down are found by a mark in their environment. Who a
process is says :mod:`kube.base.processes`; psutil reads the rest of /proc.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path

import psutil

from kube.base.processes import send

MARK = "DRA_CONFORMANCE_LOCAL_CLUSTER"
"""Environment variable that every process of a local cluster inherits; its state directory."""

POLL_SECONDS = 0.05
"""Pause between two looks at something that gives no event (an HTTP health endpoint, a file)."""

_PROC = Path("/proc")


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
