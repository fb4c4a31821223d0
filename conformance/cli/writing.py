"""How commands write a file that a user named."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.errors import UsageError
from conformance.files import write_whole


def write_named(file: Path, content: bytes) -> None:
    """Write a file and make the folders above it; what was there stays where it cannot be written.

    What is there and no regular file (``/dev/stdout``, a pipe) is written to, and never replaced.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            file.write_bytes(content)
        else:
            write_whole(Path(os.path.realpath(file)), content)  # a link stays one
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None
