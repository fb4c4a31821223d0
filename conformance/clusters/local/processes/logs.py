"""What a component's log says at its end: the most useful part of many an error message."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.redaction import redact_log

_END_BYTES = 1 << 16


def describe_log(log: Path, lines: int = 8) -> str:
    """Where a log is and how it ends, for an error message: "(log: PATH), which ends with: ..."."""
    tail = end_of(log, lines)
    return f"(log: {log}), which ends with:\n{tail}" if tail else f"(log: {log}, empty)"


def end_of(log: Path, lines: int = 8) -> str:
    """The last lines of a log, indented, without what looks like a credential; "" for none."""
    try:
        text = redact_log(tail(log, lines))
    except OSError:
        return ""
    return "\n".join(f"  {line[:400]}" for line in text.splitlines())


def tail(path: Path, lines: int) -> str:
    """The last lines of a file, at most 64 KiB of it."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-lines:])
