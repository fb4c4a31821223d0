"""Whether a target can still be asked: its API server answers, and no part of it has died.

Without this each scenario would wait for its own time to be over, one after the other, and the
cluster would be blamed for what it was not asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from kube.base.errors import TargetGoneError
from kube.connection import Connection
from localkube.base import Watch
from localkube.processes.tools import describe_log

SILENCE = 30.0
"""Seconds without any answer after which an API server is given up. A restart takes ten."""

PERIOD = 5.0  # Seconds between two looks, and the longest that one waits for an answer.


class Health:
    """Looks after one target.

    Args:
        connection: its API server; given up (`Connection.abandon`) when it does not answer.
        watch: of the cluster's source, which reports that a component has died.
        logs: component name -> its log file, for messages.
        wake: called when the target is gone, so that waiting scenarios look again.
    """

    def __init__(
        self,
        connection: Connection,
        watch: Watch | None,
        logs: Mapping[str, Path],
        wake: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._logs = logs
        self._wake = wake
        self._lock = threading.Lock()
        self._message = ""
        self._began = 0.0
        self._paused = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._end_watch = watch(self._died) if watch else None

    def start(self) -> None:
        """Begin to ask the API server now and then; does nothing the second time."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="health", daemon=True)
                self._thread.start()

    def check(self) -> None:
        """Check that all is well.

        Raises TargetGoneError: it is not, so nothing that is observed from now on says anything.
        """
        if self._message:
            raise self._error()

    def stop(self) -> None:
        self._stopping.set()
        if self._end_watch is not None:
            self._end_watch()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PERIOD + 1)

    def pause(self) -> None:
        """Let silence of the API server mean nothing: a scenario disturbs the cluster."""
        self._paused = True

    def resume(self) -> None:
        """Let silence of the API server mean something again."""
        self._began = time.monotonic()
        self._paused = False

    def _look(self) -> None:
        self._began = time.monotonic()
        while not self._stopping.wait(PERIOD):
            if self._paused or self._silence() < PERIOD or self._connection.is_answering(PERIOD):
                continue
            if self._paused or self._stopping.is_set():
                continue
            if self._silence() >= SILENCE:
                log = self._logs.get("kube-apiserver")
                self._gone(
                    f"the API server {self._connection.where} has not answered for {SILENCE:g} s"
                    + (f" {describe_log(log)}" if log else "; see its log")
                )
                self._connection.abandon(self._error)
                return

    def _died(self, message: str) -> None:
        """Give the target up, for the cluster's watch: a component ended that nobody stopped."""
        self._gone(message)
        if not self._connection.is_answering(PERIOD):  # so nothing can be cleaned up either
            self._connection.abandon(self._error)

    def _gone(self, message: str) -> None:
        with self._lock:
            self._message = self._message or message
        self._wake()

    def _error(self) -> TargetGoneError:
        return TargetGoneError(self._message)

    def _silence(self) -> float:
        """Return the seconds since the server said anything, or since it is looked after."""
        return time.monotonic() - max(self._began, self._connection.last_answer)
