"""Recorded answers of the CDI library: some drawn folders, and each case that was read wrongly.

    python -m tests.kube.cdi.golden

writes them again; needs the programs that `ci/upstream/cdi/build 1.1.2 1.1.0 1.0.1 0.8.1` makes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.kube.cdi.compare import ask
from tests.kube.cdi.draw_folders import question

Json = dict[str, Any]

NEWEST: Final = "1.1.2"
OLDER: Final = ("1.1.0", "1.0.1", "0.8.1")
_HERE: Final = Path(__file__).parent
_CASES: Final = _HERE / "cases.ndjson"
_ANSWERS: Final = _HERE / "answers.ndjson"
_ORACLES: Final = _HERE.parents[2] / "build/oracle"
_DRAWN: Final = 150


def read_cases() -> Iterator[tuple[Json, dict[str, Json]]]:
    """Yield each question and the answers by version of the library."""
    with _ANSWERS.open(encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            yield pair["question"], pair["answers"]


def _questions() -> Iterator[Json]:
    with _CASES.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            yield {"inject": ["v.com/cls=gpu0"], **case}
    for number in range(_DRAWN):
        yield {**question("golden", number), "id": f"drawn {number}"}


def main() -> None:
    questions = list(_questions())
    by_version = {
        version: ask(_ORACLES / f"cdi-{version}", questions) for version in (NEWEST, *OLDER)
    }
    with _ANSWERS.open("w", encoding="utf-8") as lines:
        for number, asked in enumerate(questions):
            answers = {version: answers[number] for version, answers in by_version.items()}
            # Of older ones only what they refuse is looked at.
            answers |= {one: {"errors": sorted(answers[one]["errors"] or ())} for one in OLDER}
            lines.write(json.dumps({"question": asked, "answers": answers}) + "\n")


if __name__ == "__main__":
    main()
