"""Real answers to drawn cases, kept in a compressed file: one line of JSON for each case."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.kubesim.apidiff.answers import Answer


class Recording:
    """A file that is written. ``path``: ends in ``.ndjson.gz``."""

    def __init__(self, path: Path) -> None:
        self._file = gzip.GzipFile(path, "wb", mtime=0)

    def add(self, seed: int, number: int, answers: Sequence[Answer]) -> None:
        """Add the answers to a case."""
        line = [seed, number, [list(dataclasses.astuple(answer)) for answer in answers]]
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        self._file.write(text.encode() + b"\n")

    def close(self) -> None:
        self._file.close()


def read_recording(path: Path) -> Iterator[tuple[int, int, list[Answer]]]:
    """Yield seed, number and answers of each case of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            seed, number, answers = json.loads(line)
            yield seed, number, [Answer(*answer) for answer in answers]
