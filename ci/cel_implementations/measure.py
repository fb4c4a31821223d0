r"""Asks other implementations of CEL the vectors of selectors, and keeps what they take otherwise.

    npm ci --prefix ci/cel_implementations/javascript
    cargo build --release --locked --manifest-path ci/cel_implementations/rust/Cargo.toml \
        --target-dir build/selectors
    python -m ci.cel_implementations.measure

One whose program or package is not there is left out; what was kept of it stays, with its date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from conformance.allocators.program import Program
from conformance.allocators.selectors import SELECTORS, SelectorVector
from reference_allocator.gates import LATEST

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / "ci/cel_implementations/results.json"
_HERE: Final = ROOT / "ci/cel_implementations"
_PACKAGES: Final = _HERE / "javascript/node_modules"
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
    python = _HERE / "python/answer.py"
    return [
        Implementation("cel-python", version("cel-python"), python, (sys.executable, python)),
        *(
            Implementation(name, number, _PACKAGES / name, ("node", script, name))
            for name, number in pinned.items()
        ),
        Implementation("cel (Rust)", "0.15.0", _RUST, (_RUST,)),
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
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
