"""A thread of the driver: works until it is stopped."""

from __future__ import annotations

import threading


class Worker:
    """Base class of what runs beside the kubelet's calls; ends when the process does."""

    def __init__(self, name: str) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Say that it is over, and wait up to ``timeout`` seconds for the thread to end."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        raise NotImplementedError
