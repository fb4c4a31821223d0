"""Who a process is, read from /proc.

A pid alone is no identity: after a crash the number may belong to somebody else. So a process is
named by its pid, the kernel's start time and the boot it ran in, and processes that were started
but never written down are found by a mark in their environment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MARK = "DRA_CONFORMANCE_LOCAL_CLUSTER"
"""Environment variable that every process of a local cluster inherits; its state directory."""

_PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """One process, for as long as the machine runs.

    Attributes:
        pid: process id in the root pid namespace.
        start_time: field 22 of /proc/PID/stat, in clock ticks since boot (proc_pid_stat(5)).
        boot_id: /proc/sys/kernel/random/boot_id.
    """

    pid: int
    start_time: int
    boot_id: str

    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        stat = _stat(self.pid)
        return (
            stat is not None
            and stat.state not in "ZX"
            and stat.start_time == self.start_time
            and boot_id() == self.boot_id
        )


@dataclass(frozen=True)
class _Stat:
    state: str
    parent: int
    start_time: int


def boot_id() -> str:
    """The kernel's random id of this boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity | None:
    """The identity of a running process, None where it is gone."""
    stat = _stat(pid)
    return None if stat is None else Identity(pid, stat.start_time, boot_id())


def command_name(pid: int) -> str:
    """Name of the program that a process runs, "" where it is gone."""
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def children(pid: int) -> list[int]:
    """Pids of the direct children of `pid`."""
    found = []
    for other in _pids():
        stat = _stat(other)
        if stat is not None and stat.parent == pid:
            found.append(other)
    return found


def marked(state_dir: Path) -> list[int]:
    """Pids of processes that carry the mark of the cluster in `state_dir`, zombies left out."""
    wanted = f"{MARK}={state_dir}".encode()
    found = []
    for pid in _pids():
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            continue  # gone meanwhile, or another user's
        if wanted in environment.split(b"\0"):
            stat = _stat(pid)
            if stat is not None and stat.state not in "ZX":
                found.append(pid)
    return found


def in_cgroup(name: str) -> list[int]:
    """Pids of processes in the cgroup `name` ("/dra-1a2b") or below it, in any hierarchy."""
    found = []
    for pid in _pids():
        try:
            lines = (_PROC / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            continue
        paths = [line.split(":", 2)[2] for line in lines]
        if any(path == name or path.startswith(name + "/") for path in paths):
            found.append(pid)
    return found


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]  # noqa: PTH208 (3x faster)


def _stat(pid: int) -> _Stat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command name is in parentheses and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return _Stat(state=fields[0], parent=int(fields[1]), start_time=int(fields[19]))
