"""Programs that tests start."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from os import PathLike
from typing import Any


def ended(command: Sequence[str | PathLike[str]], **more: Any) -> subprocess.CompletedProcess[str]:
    """A program that has ended, however it did, with what it said as text."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)
