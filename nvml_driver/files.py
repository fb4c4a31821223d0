"""Files that are either the old one or the new one, whatever happens in between."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomic(path: Path, content: bytes, *, durable: bool, mode: int = 0o644) -> None:
    """Replace a file's content in one step.

    Args:
        path: the file; its directory must exist.
        content: all of it.
        durable: also survive a loss of power, at the price of two fsync calls.
        mode: permissions of the file.

    Raises:
        OSError: nothing was replaced, and no temporary file is left.
    """
    # Dot and suffix: neither the kubelet's nor a CDI cache's directory watch takes it for its own.
    scratch = path.parent / f".{path.name}.{os.getpid()}.tmp"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def remove(path: Path, *, durable: bool) -> bool:
    """Remove a file if it is there; whether it was.

    Raises:
        OSError: it is there and stays.
    """
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    if durable:
        sync_directory(path.parent)
    return True


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
