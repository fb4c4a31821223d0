"""A question or an answer with any value anywhere is judged or refused, never a fault of ours."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.allocators.contract import read_answer
from conformance.allocators.features import features_of
from conformance.allocators.judging import answer_of_reference, explain_no_judgement, judge_answer
from conformance.allocators.program import ProgramError
from conformance.allocators.questions import VECTORS, read_questions
from kube.base.errors import UsageError
from reference_allocator.gates import LATEST

Json = dict[str, Any]
VALUES: tuple[Any, ...] = (None, 5, [], {}, "x", True, [None], [5], {"a": None}, 1.5, -1, "")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each list or object within a value, and a key of it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


def mutate(dice: random.Random, document: Json) -> Json:
    """A copy with another value somewhere."""
    copied: Json = json.loads(json.dumps(document))
    owner, key = dice.choice(list(places(copied)))
    owner[key] = dice.choice(VALUES)
    return copied


def right_answer(question: Json, reference: Json) -> Json:
    """An answer that says what the reference says."""
    return {"id": question["id"], "nodes": reference.get("nodes", [])}


def test_a_question_with_any_value_is_asked_or_refused(tmp_path: Path) -> None:
    dice, file, counts = random.Random("questions"), tmp_path / "questions.ndjson", Counter[str]()
    asked = read_questions(VECTORS, LATEST)
    for _ in range(1500):
        file.write_text(json.dumps(mutate(dice, dice.choice(asked).question)), encoding="utf-8")
        try:
            [read] = read_questions(file, LATEST)
        except UsageError:
            counts["refused"] += 1
            continue
        features_of(read.question)
        reference = answer_of_reference(read.question)
        if explain_no_judgement(reference):
            continue
        line = json.dumps(right_answer(read.question, reference)).encode()
        assert [
            *judge_answer(read.question, read_answer(line, read.question), reference, "fits")
        ] == []
        counts["judged"] += 1
    assert min(counts["refused"], counts["judged"]) > 100


def test_an_answer_with_any_value_is_judged_or_malformed() -> None:
    dice, counts = random.Random("answers"), Counter[str]()
    asked = [
        (item.question, answer_of_reference(item.question)) for item in read_questions(VECTORS)
    ]
    asked = [(question, right) for question, right in asked if right.get("nodes")]
    for _ in range(1500):
        question, right = dice.choice(asked)
        line = json.dumps(mutate(dice, right_answer(question, right))).encode()
        try:
            answer = read_answer(line, question)
        except ProgramError:
            counts["malformed"] += 1
            continue
        if not answer.invalid and not answer.unsupported:
            counts["wrong"] += bool([*judge_answer(question, answer, right, "identical")])
            counts["judged"] += 1
    assert min(counts["malformed"], counts["wrong"], counts["judged"]) > 50
