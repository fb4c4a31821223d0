"""Java properties files: what Allure reads of a run's surroundings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from conformance.redaction import redact


def write_properties(file: Path, values: Mapping[str, str]) -> None:
    """Write names and values, redacted.

    Raises:
        OSError: the file cannot be written.
    """
    lines = [
        f"{_escape(name).replace(' ', chr(92) + ' ')} = {_escape(value.strip())}\n"
        for name, value in values.items()
    ]
    file.write_text("".join(lines), encoding="ascii")


def _escape(text: str) -> str:
    # A JSON string has the same escapes for what is not printable ASCII.
    return re.sub("[:=#!]", r"\\\g<0>", json.dumps(redact(text))[1:-1])
