"""Java properties files: what Allure reads of a run's surroundings."""

from __future__ import annotations

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
    out = []
    for char in redact(text):
        if char in "\\:=#!":
            out.append(f"\\{char}")
        elif char == "\n":
            out.append("\\n")
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out += [f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)]
    return "".join(out)
