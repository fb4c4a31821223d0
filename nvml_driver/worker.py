"""A thread of the driver: works until it is stopped."""

from __future__ import annotations

import threading


class Worker:
    """A thread of the driver that works until it is stopped, or the process ends."""

    def __init__(self, name: str) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Tell the thread to end, and wait up to ``timeout`` seconds until it has."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        raise NotImplementedError
