"""Our answers against those of the real environment, which are kept as files."""

from __future__ import annotations

from typing import Any

import pytest

from reference_allocator.cel import CelDevice, compile_selector
from reference_allocator.cel.environment.tables import MINORS
from tests.reference_allocator.cel.answers import (
    GOLDEN,
    KNOWN,
    comparable,
    features,
    lines,
    ours,
)

NAMES = ("selectors", "gates", "devices", "derived", "limits", "fuzzed", "messages", "texts")


def cases() -> list[Any]:
    found: list[Any] = []
    for name in NAMES:
        answers = {answer["id"]: answer for answer in lines(GOLDEN / f"{name}.out.ndjson")}
        found += [
            pytest.param(question, answers[question["id"]], id=question["id"])
            for question in lines(GOLDEN / f"{name}.in.ndjson")
        ]
    return found


def difference(question: dict[str, Any], expected: dict[str, Any]) -> str:
    """What differs, as text; empty if nothing does. Costs are compared where there is a value."""
    wanted, actual = comparable(expected), comparable(ours(question))
    if question["expression"] in KNOWN["cost"]:
        wanted.pop("cost", None)
        actual.pop("cost", None)
    if actual == wanted:
        return ""
    return f"{question['expression']}\nexpected {wanted}\nactual   {actual}"


@pytest.mark.parametrize(("question", "expected"), cases())
def test_answers_like_kubernetes(question: dict[str, Any], expected: dict[str, Any]) -> None:
    found = difference(question, expected)
    if question["expression"] in KNOWN["answer"]:
        assert found, "this is no difference any more: remove it from known-differences.json"
    else:
        assert not found, found


def test_every_known_difference_has_a_question() -> None:
    asked = {
        question["expression"] for name in NAMES for question in lines(GOLDEN / f"{name}.in.ndjson")
    }
    assert set(KNOWN["answer"]) | set(KNOWN["cost"]) <= asked


@pytest.mark.parametrize(
    ("question", "expected"), [case for case in cases() if "match" in case.values[1]]
)
def test_generated_code_and_interpreter_agree(
    question: dict[str, Any], expected: dict[str, Any]
) -> None:
    options = features(question)
    selector = compile_selector(question["expression"], features=options)
    device = CelDevice.from_api(question["device"]["driver"], question["device"])
    assert selector.matches(device) is selector.interpret(device) is expected["match"]


def older_cases() -> list[Any]:
    found: list[Any] = []
    for minor in MINORS[:-1]:
        name = f"kubernetes-{minor}"
        pairs = zip(
            lines(GOLDEN / f"{name}.in.ndjson"), lines(GOLDEN / f"{name}.out.ndjson"), strict=True
        )
        found += [pytest.param(minor, *pair, id=pair[0]["id"]) for pair in pairs]
    return found


@pytest.mark.parametrize(("minor", "question", "expected"), older_cases())
def test_older_minors_accept_and_answer_what_theirs_do(
    minor: str, question: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert comparable(ours(question, minor)) == comparable(expected)
