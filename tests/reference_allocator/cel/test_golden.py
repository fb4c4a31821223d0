"""Our answers against those of the real environment, which are kept as files."""

from __future__ import annotations

import pytest

from reference_allocator.gates import LATEST, MINORS
from tests.reference_allocator.cel.answers import (
    GOLDEN,
    Json,
    comparable,
    explanation,
    known,
    lines,
    ours,
)

NAMES = tuple(
    """
    selectors gates devices derived limits fuzzed messages texts found
""".split()
)


def questions(name: str) -> list[Json]:
    return lines(GOLDEN / f"{name}.in.ndjson")


def difference(question: Json, expected: Json, kubernetes: str = LATEST) -> str:
    """What differs and is of no known kind, as text; empty if nothing does."""
    upstream_answer, actual = comparable(expected), comparable(ours(question, kubernetes))
    if actual == upstream_answer or explanation(question["expression"], upstream_answer, actual):
        return ""
    return (
        f"{question['id']}: {question['expression']}\nexpected {upstream_answer}\nactual   {actual}"
    )


def differences(name: str, kubernetes: str = LATEST) -> dict[str, str]:
    """Expression -> what differs, of a file's questions; each has its answer in the same line."""
    asked_questions, answers = questions(name), lines(GOLDEN / f"{name}.out.ndjson")
    differing = {}
    for question, answer in zip(asked_questions, answers, strict=True):
        assert question["id"] == answer["id"]
        text = difference(question, answer, kubernetes)
        if text:
            differing[question["expression"]] = text
    return differing


@pytest.mark.parametrize("name", NAMES)
def test_answers_like_kubernetes(name: str) -> None:
    differing = differences(name)
    allowed = known()["answer"]
    new = [text for expression, text in differing.items() if expression not in allowed]
    assert not new, "\n".join(new)
    asked_expressions = {question["expression"] for question in questions(name)}
    resolved = asked_expressions & set(allowed) - set(differing)
    assert not resolved, f"no difference any more, remove from known-differences.json: {resolved}"


def test_every_known_difference_has_a_question() -> None:
    asked_expressions = {question["expression"] for name in NAMES for question in questions(name)}
    assert set(known()["answer"]) <= asked_expressions


@pytest.mark.parametrize("minor", [minor for minor in MINORS if minor != LATEST])
def test_other_minors_accept_and_answer_what_theirs_do(minor: str) -> None:
    differing = differences(f"kubernetes-{minor}", minor)
    assert not differing, "\n".join(differing.values())
