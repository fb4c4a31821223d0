"""Files: read those that anybody may have written, and write one whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def read_regular(file: Path, most: int) -> bytes:
    """Return the content of a regular file; opening anything else could block for ever.

    ``most``: bytes.
    Raises OSError: it cannot be read, is not a regular file (EINVAL), or is larger (EFBIG).
    """
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(file))
    # It may have been replaced by a pipe since.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        data = opened.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(file))
    return data


def write_whole(file: Path, content: bytes) -> None:
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
