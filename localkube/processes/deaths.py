"""Notices that a component has ended which nobody stopped.

Without this a run goes on: each scenario of it waits for what is not there until its time is over,
and the cluster gets the blame. A fault step's kill is no such death (`Processes.stop` marks
what it ends).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from kube.base.processes import exit_status, is_alive
from localkube.processes.supervision import Processes, ProcessRecord
from localkube.processes.tools import end_of

REAPER = "reaper"
NEXT = "next-driver"
"""Stands behind a node's name for the next version of its driver, while that runs beside it."""

LOOK_SECONDS = 0.5
"""Between two looks. The process would give an event, but what takes its place later does not."""


def watch_components(processes: Processes, tell: Callable[[str], None]) -> Callable[[], None]:
    """Look after the components of a cluster, its drivers included, in a thread.

    ``tell``: called once, in that thread, with a message that names the component, how it ended and
    the end of its log. Also when it had ended before.
    Returns what ends the watch.
    """
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            dead = first_dead(processes)
            if dead is not None and not ended.is_set():
                tell(describe_death(dead))
                return

    thread = threading.Thread(target=look, name="watch components", daemon=True)
    thread.start()

    def end() -> None:
        ended.set()
        if thread is not threading.current_thread():
            thread.join(10)

    return end


def first_dead(processes: Processes) -> ProcessRecord | None:
    """Return a component that does not run although nobody stopped it; None where all is well.

    A next version of a driver that does not stay is no matter of the cluster: the old one runs on.
    """
    for name, record in processes.records().items():
        if name.rpartition("/")[2] in (REAPER, NEXT):
            continue
        if not is_alive(record.identity) and not processes.was_stopped(record):
            return record
    return None


def describe_death(record: ProcessRecord) -> str:
    """Return how a component ended: a line, then the end of its log."""
    status = exit_status(record.identity)
    if status is None:
        how = "its exit status went to the program that started it"
    elif status < 0:
        how = f"by signal {signal.Signals(-status).name}"
    else:
        how = f"exit status {status}"
    # Not where the log is: most clusters are removed with the run that says this.
    tail = end_of(record.spec.log)
    return (
        f"{record.spec.name} (pid {record.identity.pid}) has ended, {how}, although the suite"
        " did not stop it; " + (f"its log ends with:\n{tail}" if tail else "its log is empty")
    )
