"""One change at a time on a node, also when two instances of the driver run during an update.

Both instances share the directory with the checkpoint. The kernel lets go of a lock when a process
dies, however it dies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from nvml_driver.errors import DriverError

WAIT_SECONDS = 10.0
"""As long as NVIDIA's driver waits for its ``pu.lock``; well below the kubelet's 45 s."""


def file_lock(path: Path) -> FileLock:
    """The lock of a file, which is made on first use; whichever thread has it, it is held."""
    return FileLock(path, mode=0o600, thread_local=False)


@contextmanager
def held(lock: FileLock) -> Iterator[None]:
    """Hold a lock for a ``with`` block; may be nested. Raises DriverError."""
    try:
        lock.acquire(timeout=WAIT_SECONDS, poll_interval=0.01)
    except Timeout:
        raise DriverError(
            f"another instance of the driver has held {lock.lock_file} for {WAIT_SECONDS:.0f} s"
        ) from None
    except OSError as error:
        raise DriverError(f"cannot lock {lock.lock_file}: {error}") from None
    try:
        yield
    finally:
        lock.release()
