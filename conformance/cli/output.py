"""What commands print and write: safe for a terminal and a CI log, and files that are whole."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kube.base.errors import UsageError
from kube.base.files import write_whole
from kube.base.redaction import redact, redact_log
from kube.base.text import visible

_QUOTE_PREFIX = "  "
"""Prefix of the lines that a message quotes from a log."""


def printable(text: object) -> str:
    """Make a text of any origin safe to print: escape sequences visible, credentials removed.

    In quoted lines everything after ``token:`` and the like is removed, wherever it stands; in the
    suite's own sentences that would hit prose.
    """
    lines = redact(str(text)).split("\n")
    quoted = (redact_log(line) if line.startswith(_QUOTE_PREFIX) else line for line in lines)
    return visible("\n".join(quoted))


def print_progress(line: str) -> None:
    """Print a line of progress on standard error, so that output can be piped."""
    print(printable(line), file=sys.stderr, flush=True)


def write_named(file: Path, content: bytes) -> None:
    """Write a file and create its folders; if that fails, what was there stays.

    A pipe or a device (``/dev/stdout``) is written to, and never replaced.
    Raises UsageError: it cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():
            file.write_bytes(content)
        else:
            write_whole(Path(os.path.realpath(file)), content)  # a link stays one
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None
