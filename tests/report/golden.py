"""Compare with a file that a person has read. Delete the file to have it written anew."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name: str, text: str, folder: Path = FOLDER) -> None:
    path = folder / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        raise AssertionError(f"{path} was written; read it, and run again")
    assert text == path.read_text(encoding="utf-8")
