"""One change at a time on a node, also when two instances of the driver run during an update.

Both instances share the directory with the checkpoint. flock(2) serves, because the kernel lets
go of it when a process dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nvml_driver.errors import DriverError

WAIT_SECONDS = 10.0
"""As long as NVIDIA's driver waits for its ``pu.lock``; well below the kubelet's 45 s."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class FileLock:
    """A lock file, held by one process (or by many, when shared) until it lets go or dies."""

    def __init__(self, path: Path) -> None:
        """Use the file ``path``, which is made on first use and never removed."""
        self.path = path
        self._descriptor: int | None = None

    def try_acquire(self, *, shared: bool = False) -> bool:
        """Take the lock if nobody has it; whether that worked.

        Raises:
            DriverError: the file cannot be made.
        """
        if self._descriptor is not None:
            raise RuntimeError(f"{self.path} is held by this object already")
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DriverError(f"cannot open the lock file {self.path}: {error}") from None
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise DriverError(f"cannot lock {self.path}: {error}") from None
        self._descriptor = descriptor
        return True

    def acquire(self, timeout: float = WAIT_SECONDS, *, shared: bool = False) -> None:
        """Take the lock, waiting for others.

        Raises:
            DriverError: others had it for all of ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while not self.try_acquire(shared=shared):
            left = deadline - time.monotonic()
            if left <= 0:
                raise DriverError(
                    f"another instance of the driver has held {self.path} for {timeout:.0f} s"
                )
            time.sleep(min(pause, left))  # flock has no wait with a timeout
            pause = min(pause * 2, _LONGEST_PAUSE)

    def release(self) -> None:
        """Let go; nothing happens if it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def held(self, timeout: float = WAIT_SECONDS) -> Iterator[None]:
        """Hold the lock for a ``with`` block."""
        self.acquire(timeout)
        try:
            yield
        finally:
            self.release()
