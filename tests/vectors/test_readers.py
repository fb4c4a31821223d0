"""The examples that read vectors in other languages: each names those that are answered wrong.

Their allocator says that everything fits, without any device: wrong for those that do not fit, and
for those that need certain devices.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.allocators.questions import VECTORS
from reference_allocator.gates import LATEST

READERS = Path(__file__).parents[2] / "ci" / "vectors"
COMMANDS = {
    "go": ("go", "test", "-count=1", "./..."),
    "javascript": ("node", "--test"),
    "python": (sys.executable, "-m", "unittest", "-v"),
    "java": ("java", "Vectors.java"),
    "rust": ("cargo", "test", "--quiet", "--locked"),
}


def wrong_ids(language: str, folder: Path, lines: list[str]) -> tuple[int, set[str]]:
    """The exit code of a reader for some vectors, and the ids of those that it calls wrong."""
    file = folder / "vectors.ndjson"
    file.write_text("".join(lines), encoding="utf-8")
    done = subprocess.run(
        COMMANDS[language],
        cwd=READERS / language,
        env={
            **os.environ,
            "VECTORS": str(file),
            "KUBERNETES": LATEST,
            "CARGO_TARGET_DIR": str(folder / "target"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    ids = {json.loads(line)["id"] for line in lines}
    named = {identifier for identifier in ids if re.search(rf"\b{identifier}\b\"?:", done.stdout)}
    return done.returncode, named


@pytest.mark.everything
@pytest.mark.parametrize("language", COMMANDS)
def test_a_reader_names_the_vectors_that_are_answered_wrong(language: str, tmp_path: Path) -> None:
    program = COMMANDS[language][0]
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} on this machine")
    lines = VECTORS.read_text(encoding="utf-8").splitlines(keepends=True)[:60]
    vectors = {line: json.loads(line) for line in lines}
    asked = [vector for vector in vectors.values() if LATEST in vector["kubernetes"]]
    refused = {vector["id"] for vector in asked if not all(vector["expected"].values())}
    certain = {vector["id"] for vector in asked if vector.get("devices")}
    assert min(len(refused), len(certain)) > 10
    code, named = wrong_ids(language, tmp_path, lines)
    assert (code != 0, named) == (True, refused | certain)
    fitting = [
        json.dumps({**vector, "devices": {"node-0": []}}, separators=(",", ":")) + "\n"
        for vector in vectors.values()
        if vector["id"] not in refused
    ]
    assert wrong_ids(language, tmp_path, fitting) == (0, set())
