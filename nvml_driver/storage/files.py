"""Writes files that are either the old one or the new one; takes locks that end with a process.

Two instances of the driver share the directory with the checkpoint during an update, so a change
on a node is made under a lock; the kernel lets go of it when a process dies, however it dies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from nvml_driver.errors import DriverError
from nvml_driver.storage import faults


def write_atomic(
    path: Path, content: bytes, *, durable: bool, mode: int = 0o644, fault_prefix: str = "file"
) -> None:
    """Replace a file's content in one step.

    Args:
        durable: also survive a loss of power, at the price of two fsync calls.
        fault_prefix: begins the names of the file's fault points (see ``faults``).

    Raises OSError: nothing was replaced, and no temporary file is left.
    """
    faults.reach(f"{fault_prefix}:begin")
    # Dot and suffix: neither the kubelet's nor a CDI cache's directory watch takes it for its own.
    scratch = path.parent / f".{path.name}.{os.getpid()}.tmp"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        faults.reach(f"{fault_prefix}:written")
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    faults.reach(f"{fault_prefix}:replaced")
    if durable:
        sync_directory(path.parent)
    faults.reach(f"{fault_prefix}:synced")


def remove_file(path: Path, *, durable: bool, fault_prefix: str = "file") -> bool:
    """Remove a file and return True, or False if there is none. Raises OSError: it stays."""
    faults.reach(f"{fault_prefix}:removing")
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    if durable:
        sync_directory(path.parent)
    faults.reach(f"{fault_prefix}:removed")
    return True


def remove_scratch(folder: Path, prefix: str = "") -> None:
    """Remove what a killed ``write_atomic`` left; nobody may be writing. Raises OSError."""
    for path in folder.glob(f".{prefix}*.tmp"):
        path.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


WAIT_SECONDS = 10.0
"""As long as NVIDIA's driver waits for its ``pu.lock``; well below the kubelet's 45 s."""


def file_lock(path: Path) -> FileLock:
    """Return the lock of a file, which is made on first use.

    Whichever thread has it, it is held.
    """
    return FileLock(path, mode=0o600, thread_local=False)


@contextmanager
def hold_lock(lock: FileLock) -> Iterator[None]:
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
