"""Lets one program at a time do something, over all processes of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of a file while the context is open; it ends with the process, too.

    Args:
        path: the lock file. It is made, with its directory, and stays.
        waiting: called once where another program holds it.

    Raises OSError: the file cannot be made.
    """
    from filelock import FileLock, Timeout  # most commands lock nothing

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
