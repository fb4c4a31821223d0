"""Files: read those that anybody may have written, and write one whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def read_regular(file: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes.

    Raises OSError: as `open_regular`, or it is larger (EFBIG).
    """
    with open_regular(file) as opened:
        # Room for what it says that it has: for the most, memory is taken anew each time.
        expected = min(os.fstat(opened.fileno()).st_size, most)
        data = opened.read(expected + 1)
        if len(data) > expected:  # it grows, or is one of /proc, which says nothing
            data += opened.read(most - expected)
    if len(data) > most:
        raise too_large(file, most)
    return data


def open_regular(file: Path) -> BinaryIO:
    """Open a regular file to read it; nothing else, because that could block for ever.

    Raises OSError: it cannot be read, or is not a regular file (EINVAL).
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(file))
    # It may have been replaced by a pipe since.
    return os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def too_large(file: Path, most: int) -> OSError:
    """What is raised of a file of more bytes than are read."""
    return OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(file))


def write_whole(file: Path, content: bytes | bytearray) -> None:
    """Replace a file by one that is complete; a full disk leaves what was there, and no scrap.

    Raises OSError: it cannot be written.
    """
    scratch = file.with_name(f"{file.name}.tmp")
    try:
        scratch.write_bytes(content)
        scratch.replace(file)
    except OSError:
        with suppress(OSError):
            scratch.unlink()
        raise
