"""The processes, cgroups and mounts of a local cluster, read from /proc.

Processes that were started but never written down are found by a mark in their environment. Who a
process is says :mod:`kube.base.processes`; psutil reads the rest of /proc.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import psutil

from kube.base.processes import send

MARK = "DRA_CONFORMANCE_LOCAL_CLUSTER"
"""Environment variable that every process of a local cluster inherits; its state directory."""

POLL_SECONDS = 0.05
"""Pause between two looks at something that gives no event (an HTTP health endpoint, a file)."""

_PROC = Path("/proc")


def command_name(pid: int) -> str:
    """Return name of the program that a process runs, "" where it is gone."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).name()
    return ""


def list_children(pid: int, *, recursive: bool = False) -> list[int]:
    """Return pids of the children of `pid`, and if wanted of theirs."""
    with contextlib.suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=recursive)]
    return []


def kill_all(find: Callable[[], Collection[int]], timeout_seconds: float) -> list[int]:
    """Kill what `find` finds until it finds nothing more; those that are left when time is over."""
    deadline = time.monotonic() + timeout_seconds
    while pids := sorted(find()):
        if time.monotonic() > deadline:
            return pids
        send(pids, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    return []


def find_marked(state_dir: Path) -> list[int]:
    """Return pids of processes with the mark of the cluster in `state_dir`, but no zombies."""
    pids = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # gone meanwhile, or another user's
            if process.environ().get(MARK) == str(state_dir):
                pids.append(process.pid)
    return pids


def in_cgroup(name: str) -> list[int]:
    """Return pids of processes in the cgroup `name` ("/dra-1a2b") or below it, in any hierarchy."""
    pids_in_cgroup = []
    for pid in psutil.pids():
        try:
            lines = (_PROC / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            continue
        paths = [line.split(":", 2)[2] for line in lines]
        if any(path == name or path.startswith(name + "/") for path in paths):
            pids_in_cgroup.append(pid)
    return pids_in_cgroup


def peak_memory(pids: Iterable[int]) -> int:
    """Return the sum of the most physical memory that each process ever had, in bytes.

    ``VmHWM`` of proc_pid_status(5). More than they had together: a page that several share counts
    for each, and their peaks need not have been at the same time. One that is gone counts nothing.
    """
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in (_PROC / str(pid) / "status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total += int(line.split()[1]) << 10
    return total


def list_mounts(pid: int | str = "self") -> list[tuple[Path, str]]:
    """Return mount points as a process sees them, and the types of what is mounted there.

    Source: proc_pid_mountinfo(5).
    """
    mount_points = []
    for line in (_PROC / str(pid) / "mountinfo").read_text().splitlines():
        fields, _, right = line.partition(" - ")
        point = fields.split()[4].encode().decode("unicode_escape")
        mount_points.append((Path(point), right.split()[0]))
    return mount_points


def mounts_below(directory: Path, pid: int | str = "self") -> list[Path]:
    """Return mount points at or below a directory as a process sees them, the deepest first."""
    points = [point for point, _ in list_mounts(pid) if point.is_relative_to(directory)]
    return sorted(points, key=lambda point: len(point.parts), reverse=True)
