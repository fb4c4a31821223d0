"""Our allocator against what the real one said, kept as files; no Go is needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference_allocator.checks import check
from reference_allocator.snapshot import API_VERSION, KIND, Snapshot
from reference_allocator.wire import answer_allocate
from tests.oracle.errors import ERRORS, shown
from tests.oracle.golden import read
from tests.oracle.knobs import KNOBS, decides, ours
from tests.oracle.upstream import comparable

Json = dict[str, Any]


_AMBIGUOUS = {"subrequest names twice", "request names twice"}
"""A result names its request; the API server makes sure that it can be told which one that is."""


def cases() -> list[Any]:
    return [
        pytest.param(question, answer, id=question["id"])
        for name in ("found", "problems", "rules")
        for question, answer in zip(read(f"{name}.in"), read(f"{name}.out"), strict=True)
    ]


@pytest.mark.parametrize(("question", "expected"), cases())
def test_answers_like_the_real_allocator(question: Json, expected: Json) -> None:
    assert comparable(json.loads(answer_allocate(json.dumps(question)))) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        case
        for case in cases()
        if "allocations" in json.dumps(case.values[1]) and case.id not in _AMBIGUOUS
    ],
)
def test_checker_accepts_what_the_real_allocator_gives_out(question: Json, expected: Json) -> None:
    kinds = ("slices", "deviceClasses", "nodes", "claims", "allocated")
    snapshot = Snapshot.from_dict(
        {"apiVersion": API_VERSION, "kind": KIND, "kubernetes": "1.37.1"}
        | {kind: question.get(kind, []) for kind in kinds}
        | {"features": question["features"]}
    )
    for node, answer in zip(question["nodes"], expected["nodes"], strict=True):
        if answer["outcome"] == "allocated":
            found = check(snapshot, node, question["claims"], answer.get("allocations", []))
            assert not found


def rules() -> list[Any]:
    """(name of a rule or an error, a problem and its answer that show it)."""
    pairs = zip(read("rules.in"), read("rules.out"), strict=True)
    return [
        pytest.param(name, question, answer, id=f"{name}: {number}")
        for number, (question, answer) in enumerate(pairs)
        for name in question["id"].partition(": ")[2].split(", ")
    ]


@pytest.mark.parametrize(("name", "question", "answer"), rules())
def test_golden_problem_is_about_the_rules_that_it_names(
    name: str, question: Json, answer: Json
) -> None:
    if name in KNOBS:
        assert decides(name, question, ours(question))
    else:
        assert name in shown(answer)


def test_golden_answers_show_every_rule_and_every_error() -> None:
    assert {case.values[0] for case in rules()} == {*KNOBS, *ERRORS}


def test_golden_answers_show_every_outcome() -> None:
    outcomes = {node["outcome"] for answer in read("problems.out") for node in answer["nodes"]}
    assert outcomes == {"allocated", "none", "nodeError", "error"}
