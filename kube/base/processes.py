"""Who a process is, read from /proc.

A pid alone is no identity: after a crash the number may belong to somebody else. So a process is
named by its pid, the kernel's start time and the boot it ran in. psutil's own identity of a process
is not enough: its creation time moves with the machine's clock, and what one program has started
may be stopped days later by another.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

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
        """Return whether this very process runs; a zombie does not, once all its threads ended.

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


def identify_process(pid: int) -> Identity | None:
    """Return the identity of a running process, None where it is gone."""
    state, _, start_time = _stat(pid)
    return Identity(pid, start_time, boot_id()) if state else None


def is_alive(identity: Identity) -> bool:
    """Return whether the process runs; collects its exit status where it was a child of ours."""
    with contextlib.suppress(ChildProcessError):  # started by an earlier program
        pid, status = os.waitpid(identity.pid, os.WNOHANG)
        if pid:
            _statuses[identity] = os.waitstatus_to_exitcode(status)
    return identity.alive()


def exit_status(identity: Identity) -> int | None:
    """Return how a process of ours ended (-9: by signal 9); None: another program's child."""
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


def _stat(pid: int) -> tuple[str, int, int]:
    """State ("Z" for a zombie, "" where there is none), number of threads, start time."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return "", 0, 0
    # The command name is in parentheses and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[17]), int(fields[19])
