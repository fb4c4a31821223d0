r"""Asks other implementations of CEL the vectors of selectors, and keeps what they take otherwise.

    python -m venv build/selectors/python
    build/selectors/python/bin/pip install -r ci/cel_implementations/python/requirements.txt
    npm ci --prefix ci/cel_implementations/javascript
    mvn -f ci/cel_implementations/java -DoutputDirectory=$PWD/build/selectors/java \
        org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies
    cargo build --release --locked --manifest-path ci/cel_implementations/rust/Cargo.toml \
        --target-dir build/selectors
    python -m ci.cel_implementations.measure

One whose program or package is not there is left out; what was kept of it stays, with its date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from conformance.allocators.program import Program
from conformance.allocators.selectors import SELECTORS, SelectorVector
from reference_allocator.gates import LATEST

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / "ci/cel_implementations/results.json"
_HERE: Final = ROOT / "ci/cel_implementations"
_PACKAGES: Final = _HERE / "javascript/node_modules"
_PYTHON: Final = ROOT / "build/selectors/python/bin/python"
_JAVA: Final = ROOT / "build/selectors/java"
_RUST: Final = ROOT / "build/selectors/release/selectors"
_SECONDS: Final = 60
Json = dict[str, Any]


@dataclass(frozen=True)
class Implementation:
    """An implementation of CEL.

    Attributes:
        needs: a file that is there once it was installed.
        command: its program, which reads questions and writes answers, a line each.
    """

    name: str
    version: str
    needs: Path
    command: tuple[str | Path, ...]


def implementations() -> list[Implementation]:
    """Return those that are here, each in the version that is pinned."""
    script = _HERE / "javascript/answer.mjs"
    pinned: Mapping[str, str] = json.loads((_HERE / "javascript/package.json").read_text())[
        "dependencies"
    ]
    requirements = (_HERE / "python/requirements.txt").read_text(encoding="utf-8").split()
    answer, java = _HERE / "python/answer.py", _HERE / "java"
    pins = (java / "pom.xml").read_text(encoding="utf-8")
    found = re.search(r"<artifactId>cel</artifactId>\s*<version>([^<]+)<", pins)
    if found is None:
        raise ValueError("ci/cel_implementations/java/pom.xml pins no version of cel")
    return [
        *(
            Implementation(name, number, _PYTHON, (_PYTHON, answer, name))
            for name, _, number in (line.partition("==") for line in requirements)
        ),
        *(
            Implementation(name, number, _PACKAGES / name, ("node", script, name))
            for name, number in pinned.items()
        ),
        Implementation("cel (Rust)", "0.15.0", _RUST, (_RUST,)),
        Implementation(
            "dev.cel (Java)",
            found[1],
            _JAVA,
            ("java", "-cp", f"{_JAVA}/*", java / "Selectors.java"),
        ),
    ]


def read_vectors() -> list[SelectorVector]:
    """Return the vectors."""
    lines = SELECTORS.read_text(encoding="utf-8").splitlines()
    return [SelectorVector.model_validate_json(line) for line in lines]


def outcome_of(answer: Mapping[str, Any]) -> str:
    """Return "true", "false" or "error": a text that does not compile matches no device either."""
    return json.dumps(answer["match"]) if "match" in answer else "error"


def find_differences(item: Implementation, vectors: Sequence[SelectorVector]) -> dict[str, str]:
    """Return vector -> what the implementation says where Kubernetes says something else."""
    said: dict[str, str] = {}
    with Program(item.command, _SECONDS, option=item.name) as program:
        for vector in vectors:
            outcome = outcome_of(json.loads(program.ask(vector.question)))
            if outcome != outcome_of(vector.expected[LATEST]):
                said[vector.id] = outcome
    return said


def main() -> int:
    """Asks all that are here, prints a line for each, and writes the file."""
    vectors = read_vectors()
    kept: Json = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for item in implementations():
        if not item.needs.exists():
            sys.stdout.write(f"{item.name}: {item.needs.relative_to(ROOT)} is not there\n")
            continue
        said = find_differences(item, vectors)
        kept[item.name] = {
            "version": item.version,
            "date": datetime.now(UTC).date().isoformat(),
            "kubernetes": LATEST,
            "asked": len(vectors),
            "otherwise": said,
        }
        sys.stdout.write(f"{item.name} {item.version}: {len(said)} of {len(vectors)} otherwise\n")
    names = [item.name for item in implementations()]
    kept = {name: kept[name] for name in names if name in kept}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
