"""Our answer to a question of the oracle, in the oracle's format, and what may differ in it."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from reference_allocator.cel import COST_LIMIT
from reference_allocator.gates import LATEST
from reference_allocator.wire import answer_cel

Json = dict[str, Any]

GOLDEN: Final = Path(__file__).parent / "golden"
_UNBOUNDED: Final = 10**18
_GO_TYPES: Final = {
    "*types.concatList": "*types.baseList",
    "map[string]interface {}": "map[ref.Val]ref.Val",
}
_TOLD_IN_FEWER_WORDS: Final = ("URL parse error", "IP Address", "network address parse error")


@cache
def known() -> dict[str, dict[str, str]]:
    """Reasons: "answer" per expression, "kinds" of differences that `explanation` tells apart."""
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
    """What has to be the same; what an evaluation cost is not counted here as in Go."""
    keys = """
        match attribute error compileError type maxCost invalid unsupported
    """.split()
    return {key: answer[key] for key in keys if key in answer}


_GENERIC = re.compile(r"types\.(?:nativeMap|sliceList)\[[^\n]*\]")
_BASES = {"nativeMap": "types.baseMap", "sliceList": "types.baseList"}


def _with_base_types(answer: Json) -> Json:
    """The answer with Go's types of maps and lists by the names that they had until 1.37."""
    text = answer.get("compileError", "")
    named = _GENERIC.sub(lambda found: _BASES[found[0][6:].partition("[")[0]], text)
    return {**answer, "compileError": named} if text else answer


def _without_guess(answer: Json) -> Json:
    """The answer without cel-go's guess at what an undeclared name was meant to be (1.38)."""
    if "compileError" not in answer:
        return answer
    text = re.sub(r" \((?:did you mean [^\n]*|enable with [^\n]*)\)", "", answer["compileError"])
    return {**answer, "compileError": text}


def explanation(expression: str, theirs: Json, mine: Json) -> str:
    """The kind of a difference between comparable answers, as far as they show it, or nothing."""
    errors = [answer.get("error", "") for answer in (theirs, mine)]
    if _without_guess(theirs) == mine:
        return "guess"
    if _with_base_types(theirs) == mine:
        return "type name"
    if theirs.get("maxCost", 0) != mine.get("maxCost", 0) and all(
        answer.get("maxCost", 0) > _UNBOUNDED for answer in (theirs, mine)
    ):
        return explanation(expression, {**theirs, "maxCost": mine["maxCost"]}, mine) or "unbounded"
    if "cel.@mapInsert(map, map)" in errors[0]:
        return "nan key"
    compile_errors = [answer.get("compileError", "") for answer in (theirs, mine)]
    if all("undeclared reference" in text for text in compile_errors):
        return "guess"
    if "compileError" in theirs and "compileError" in mine:
        both = (theirs["compileError"], mine["compileError"])
        return "syntax" if any("Syntax error" in text for text in both) else ""
    if any(theirs.get(key) != mine.get(key) for key in ("type", "maxCost", "compileError")):
        return ""
    if mine.get("unsupported"):
        return "message"
    if errors[0].startswith("internal error: interface conversion"):
        return "tracker"
    if any("cost limit" in text for text in errors) and theirs["maxCost"] > COST_LIMIT:
        return "cost"
    if any(all(text.startswith(prefix) for text in errors) for prefix in _TOLD_IN_FEWER_WORDS):
        return "wording"
    if "sortBy(" in expression and "attribute" in theirs and "attribute" in mine:
        lists = [sorted(map(str, *answer["attribute"].values())) for answer in (theirs, mine)]
        return "sort" if lists[0] == lists[1] else ""
    message = re.sub(r"\*types\.sliceList\[\w+\]", "*types.baseList", errors[0])
    for special, common in _GO_TYPES.items():
        message = message.replace(special, common)
    return "go type" if message and message == errors[1] else ""
