"""Programs of the operating system that a local cluster needs, and how the log of a program ends.

Programs are looked up in the administrator's directories, too, which an ordinary PATH leaves out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from kube.base.redaction import redact_log
from localkube.base import ClusterUsageError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

GO_SETTINGS = {"GOGC": "300"}
"""Environment of Kubernetes' components: an eighth of kube-apiserver's CPU time is garbage
collection. With a heap of four times what is in use it is a quarter of that."""


def search_path() -> str:
    """Return the user's PATH, then the system's directories."""
    return os.pathsep.join(filter(None, (os.environ.get("PATH"), SYSTEM_PATH)))


def locate_tool(name: str) -> str | None:
    """Return absolute path of a program, None where it is not installed."""
    return shutil.which(name, path=search_path())


def find_tool(name: str) -> str:
    """Return absolute path of a program. Raises ClusterUsageError: it is not installed."""
    path = locate_tool(name)
    if path is None:
        raise ClusterUsageError(f"the program {name} is not installed (looked in {search_path()})")
    return path


def find_program(name: str) -> str:
    """Return absolute path of a program that a user names, by its path or as it is in PATH.

    Raises ClusterUsageError: it does not exist or is not executable.
    """
    path = locate_tool(name)
    if path is None:
        raise ClusterUsageError(
            f"the command's program {name!r} does not exist or is not executable (looked in "
            f"{Path.cwd()} and {search_path()})"
        )
    return str(Path(path).absolute())


def failure_of(*command: str) -> str:
    """Run a command; what it says if it fails, "" if it does not."""
    completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return (completed.stderr.strip() or "it failed") if completed.returncode else ""


def python_path() -> str:
    """PYTHONPATH with which a child finds these packages, also from a checkout not installed."""
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))


_END_BYTES = 1 << 16


def describe_log(log: Path, lines: int = 8) -> str:
    """Say where a log is and how it ends, for an error: "(log: PATH), which ends with: ..."."""
    log_end = end_of(log, lines)
    return f"(log: {log}), which ends with:\n{log_end}" if log_end else f"(log: {log}, empty)"


def end_of(log: Path, lines: int = 8) -> str:
    """Return the last lines of a log, indented and with credentials redacted; "" for none."""
    try:
        text = redact_log(read_tail(log, lines))
    except OSError:
        return ""
    return "\n".join(f"  {line[:400]}" for line in text.splitlines())


def read_tail(path: Path, lines: int) -> str:
    """Return the last lines of a file, at most 64 KiB of it."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-lines:])
