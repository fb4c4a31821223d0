"""Our answer to a question of the oracle, in the oracle's format, and what may differ in it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from reference_allocator.cel.environment.tables import LATEST
from reference_allocator.wire import answer_cel

Json = dict[str, Any]

GOLDEN: Final = Path(__file__).parent / "golden"


@cache
def known() -> dict[str, dict[str, str]]:
    """Reasons: "answer" and "cost" per expression, "kinds" for differences the fuzzer explains."""
    reasons: dict[str, dict[str, str]] = json.loads(
        (GOLDEN / "known-differences.json").read_text(encoding="utf-8")
    )
    return reasons


def lines(path: Path) -> list[Json]:
    """The objects of an NDJSON file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def ours(question: Json, kubernetes: str = LATEST) -> Json:
    """The answer in the oracle's format."""
    answer: Json = json.loads(answer_cel(json.dumps(question), kubernetes=kubernetes))
    return answer


def comparable(answer: Json) -> Json:
    """What has to be the same; costs are compared where there is a value."""
    keys = """
        match attribute error compileError type maxCost invalid unsupported
    """.split()
    if "match" in answer:
        keys.append("cost")
    return {key: answer[key] for key in keys if key in answer}
