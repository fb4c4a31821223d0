"""Our answers against those of the real environment, which are kept as files."""

from __future__ import annotations

import pytest

from reference_allocator.cel.environment.tables import LATEST, MINORS
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
    wanted, actual = comparable(expected), comparable(ours(question, kubernetes))
    if actual == wanted or explanation(question["expression"], wanted, actual):
        return ""
    return f"{question['id']}: {question['expression']}\nexpected {wanted}\nactual   {actual}"


def differences(name: str, kubernetes: str = LATEST) -> dict[str, str]:
    """Expression -> what differs, of a file's questions; each has its answer in the same line."""
    asked, answers = questions(name), lines(GOLDEN / f"{name}.out.ndjson")
    found = {}
    for question, answer in zip(asked, answers, strict=True):
        assert question["id"] == answer["id"]
        text = difference(question, answer, kubernetes)
        if text:
            found[question["expression"]] = text
    return found


@pytest.mark.parametrize("name", NAMES)
def test_answers_like_kubernetes(name: str) -> None:
    found = differences(name)
    allowed = known()["answer"]
    new = [text for expression, text in found.items() if expression not in allowed]
    assert not new, "\n".join(new)
    asked = {question["expression"] for question in questions(name)}
    resolved = asked & set(allowed) - set(found)
    assert not resolved, f"no difference any more, remove from known-differences.json: {resolved}"


def test_every_known_difference_has_a_question() -> None:
    asked = {question["expression"] for name in NAMES for question in questions(name)}
    assert set(known()["answer"]) <= asked


@pytest.mark.parametrize("minor", MINORS[:-1])
def test_older_minors_accept_and_answer_what_theirs_do(minor: str) -> None:
    found = differences(f"kubernetes-{minor}", minor)
    assert not found, "\n".join(found.values())
