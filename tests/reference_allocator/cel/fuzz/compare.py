"""Asks the real CEL environment and ours the same random questions; stops at a new difference.

    python -m tests.reference_allocator.cel.fuzz.compare --oracle build/oracle/celoracle -n 5000

A difference of one of the kinds in golden/known-differences.json is counted; any other is printed
with its question, and the exit code is 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from conformance.fuzz.draw.dice import Dice
from kubesim.store import clone
from reference_allocator.gates import LATEST, MINORS
from tests.oracle.limits import draw_limits_of_device
from tests.random_comparison import DIFFERENT, make_parser, run_comparison
from tests.reference_allocator.cel.answers import Json, comparable, explanation, known, ours
from tests.reference_allocator.cel.fuzz.corners import CORNERS
from tests.reference_allocator.cel.fuzz.questions import question

_OUTCOMES: Final = ("match", "attribute", "error", "compileError")
_CHUNK: Final = 500
_MEMORY: Final = 2 * 2**30
"""Bytes of address space for Go: some expressions would take all that the machine has."""
_SECONDS: Final = 20
"""For a chunk of questions, which takes a second."""
_SMALLER: Final = {
    "9223372036854775807": "1000",
    "9223372036854775808": "3",
    "18446744073709551615u": "7u",
    "1e10": "1e3",
    "64Gi": "64",
}
_PANIC: Final = "internal error: runtime error: hash of unhashable type types.Bytes"
_ZONE: Final = re.compile("time(stamp overflow| zone offset)|unknown time zone|strconv.Atoi")
_ATTEMPTS: Final = 40
"""How often Go is asked again where it visits a map in random order."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when every difference is explained, 1 otherwise."""
    parser = make_parser(__doc__, "ci/upstream", "expressions", 5000)
    parser.add_argument("--kubernetes", choices=MINORS, default=LATEST, help="the oracle's minor")
    parser.add_argument("--corner", choices=CORNERS, default="", help="ask about nothing else")
    parser.add_argument("--hunt", action="store_true", help="give devices values at the limits")
    options = parser.parse_args(arguments)

    def compare_expressions(seed: str, numbers: range, counts: Counter[str]) -> bool:
        asked_questions = [question(seed, number, options.corner) for number in numbers]
        if options.hunt:
            asked_questions = [_with_limits(item) for item in asked_questions]
        if MINORS.index(options.kubernetes) < MINORS.index(LATEST):
            asked_questions = [
                older(item, options.kubernetes)
                for item in asked_questions
                if not item.get("derived")
            ]
        if MINORS.index(options.kubernetes) > MINORS.index(LATEST):
            for item in asked_questions:
                # Since 1.38 nothing is found below an empty driver's name.
                item["device"]["driver"] = item["device"]["driver"] or "dra.example.com"
        before = counts[DIFFERENT]
        _compare(asked_questions, options.oracle, options.kubernetes, counts)
        return counts[DIFFERENT] > before

    return run_comparison(options, "expressions", _CHUNK, compare_expressions)


def ask(oracle: Path, questions: Sequence[Json]) -> list[Json]:
    """Go's answers; what takes its memory or its time beyond measure is "exhausted"."""
    answers: list[Json] = []
    command = ["prlimit", f"--as={_MEMORY}", str(oracle)]
    while len(answers) < len(questions):
        text = "".join(json.dumps(item) + "\n" for item in questions[len(answers) :])
        try:
            result = subprocess.run(
                command, input=text.encode(), capture_output=True, timeout=_SECONDS, check=False
            )
            output = result.stdout
        except subprocess.TimeoutExpired as stopped:
            output = stopped.stdout or b""
        # Each answer is written at once, so the first one that is missing is what Go died of.
        answers += [json.loads(line) for line in output.split(b"\n")[:-1]]
        if len(answers) < len(questions):
            answers.append({"exhausted": True})
    return answers


def _compare(
    questions: Sequence[Json], oracle: Path, kubernetes: str, counts: Counter[str]
) -> None:
    for item, answer in zip(questions, ask(oracle, questions), strict=True):
        theirs, mine = comparable(answer), comparable(ours(item, kubernetes))
        kind = "same"
        if answer.get("exhausted"):
            kind = _known("exhausted")
        elif theirs != mine:
            kind = _explained(item, theirs, mine, oracle)
        if kind == DIFFERENT:
            sys.stdout.write(f"{json.dumps(item)}\n  Go   {theirs}\n  ours {mine}\n")
        counts[kind] += 1
        outcomes = [name for name in _OUTCOMES if name in theirs]
        counts[f"  of all: {outcomes[0] if outcomes else 'no answer'}"] += 1


def _explained(item: Json, theirs: Json, mine: Json, oracle: Path) -> str:
    """Which known kind a difference is of, or "different"."""
    if theirs.get("error", "").startswith("panic: ") or theirs.get("error") == _PANIC:
        return _known("panic")
    kind = explanation(item["expression"], theirs, mine)
    if kind:
        return _known(kind)
    if "compileError" in theirs or "compileError" in mine:
        return DIFFERENT
    if _ZONE.match(mine.get("error", "")) and ".get" in item["expression"]:
        return _known("zone")
    # Only a visit of a map with several entries has an order, and Go's is random.
    repeated_answers = [comparable(answer) for answer in ask(oracle, [item] * _ATTEMPTS)]
    if any(answer != theirs for answer in repeated_answers):
        return _known("map order") if mine in repeated_answers else DIFFERENT
    return DIFFERENT


def _with_limits(item: Json) -> Json:
    device = clone(item["device"])
    draw_limits_of_device(Dice(Random(f"{item['id']}-limits")), device)
    return {**item, "device": device}


def older(item: Json, kubernetes: str) -> Json:
    """The question as far as an older minor's API knows it, and within what its Go can answer."""
    lists = ("ints", "bools", "strings", "versions")
    attributes = item["device"]["attributes"]
    if not (kubernetes == "1.36" and item.get("features", {}).get("listTypeAttributes")):
        attributes = {
            name: value for name, value in attributes.items() if not set(value) & set(lists)
        }
    expression = item["expression"]
    if "lists.range" in expression:  # without a limit before 1.37: Go would take all memory
        for number, smaller in _SMALLER.items():
            expression = expression.replace(number, smaller)
        attributes = {**attributes, "n": {"int": 5}} if "n" in attributes else attributes
    device = {**item["device"], "attributes": attributes}
    return {**item, "expression": expression, "device": device}


def _known(kind: str) -> str:
    assert kind in known()["kinds"], kind
    return f"known: {kind}"


if __name__ == "__main__":
    sys.exit(main())
