"""Our allocator against what the real one said, kept as files; no Go is needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.allocators.judging import snapshot_of
from reference_allocator.checks import check
from reference_allocator.wire import answer_allocate
from tests.oracle.errors import ERRORS, shown
from tests.oracle.golden import read
from tests.oracle.knobs import KNOBS, decides, ours
from tests.oracle.upstream import comparable

Json = dict[str, Any]


FILES = ("found", "problems", "rules")


def cases(name: str) -> list[tuple[Json, Json]]:
    return list(zip(read(f"{name}.in"), read(f"{name}.out"), strict=True))


@pytest.mark.parametrize("name", FILES)
def test_answers_like_the_real_allocator(name: str) -> None:
    for question, expected in cases(name):
        answer = comparable(json.loads(answer_allocate(json.dumps(question))))
        assert answer == expected, question["id"]


@pytest.mark.parametrize("name", FILES)
def test_checker_accepts_what_the_real_allocator_gives_out(name: str) -> None:
    for question, expected in cases(name):
        for node, answer in zip(question["nodes"], expected["nodes"], strict=True):
            allocations = answer.get("allocations", [])
            if answer["outcome"] == "allocated":
                found = check(snapshot_of(question), node, question["claims"], allocations)
                assert not found, question["id"]


def test_1_38_answers_as_its_own_allocator_and_otherwise_than_1_37() -> None:
    for question, expected in cases("kubernetes-1.38"):
        answers = {
            minor: comparable(json.loads(answer_allocate(json.dumps(question), kubernetes=minor)))
            for minor in ("1.37", "1.38")
        }
        assert answers["1.38"] == expected, question["id"]
        assert answers["1.37"] != expected, question["id"]
        snapshot = snapshot_of(question, "1.38")
        for node, answer in zip(question["nodes"], expected["nodes"], strict=True):
            if answer["outcome"] == "allocated":
                assert not check(snapshot, node, question["claims"], answer["allocations"])


def rules() -> list[tuple[str, Json, Json]]:
    """(name of a rule or an error, a problem and its answer that show it)."""
    return [
        (name, question, answer)
        for question, answer in cases("rules")
        for name in question["id"].partition(": ")[2].split(", ")
    ]


def test_golden_problems_are_about_the_rules_that_they_name() -> None:
    for name, question, answer in rules():
        if name in KNOBS:
            assert decides(name, question, ours(question)), question["id"]
        else:
            assert name in shown(answer), question["id"]


def test_golden_answers_show_every_rule_and_every_error() -> None:
    assert {name for name, _, _ in rules()} == {*KNOBS, *ERRORS}


def test_golden_answers_show_every_outcome() -> None:
    outcomes = {node["outcome"] for answer in read("problems.out") for node in answer["nodes"]}
    assert outcomes == {"allocated", "none", "nodeError", "error"}
