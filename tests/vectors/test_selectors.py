"""The shipped vectors of selectors: the reference answers as Kubernetes does, for each minor."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from conformance.allocators.selectors import SELECTORS, SelectorVector
from conformance.cli.app import app
from reference_allocator.gates import MINORS
from tests.vectors.selectors import ROWS, differences


@pytest.fixture(scope="module")
def vectors() -> list[SelectorVector]:
    lines = SELECTORS.read_text(encoding="utf-8").splitlines()
    return [SelectorVector.model_validate_json(line) for line in lines]


def test_the_reference_answers_as_kubernetes(vectors: list[SelectorVector]) -> None:
    assert [(item.id, minor) for item in vectors for minor in differences(item)] == []


def test_every_row_has_an_answer_of_every_minor(vectors: list[SelectorVector]) -> None:
    written = {identifier: (expression, sentence) for identifier, expression, sentence, _ in ROWS}
    assert len(written) == len(ROWS) == len(vectors)
    for item in vectors:
        assert written[item.id] == (item.question["expression"], item.sentence)
        assert {*item.expected} == {*MINORS}
        for answer in item.expected.values():
            assert len({"match", "error", "compileError"} & {*answer}) == 1


def test_an_answer_that_differs_is_noticed(vectors: list[SelectorVector]) -> None:
    first = vectors[0].model_copy(update={"expected": {"1.37": {"match": False, "maxCost": 2}}})
    assert differences(first) == ["1.37"]


def test_the_command_prints_them(vectors: list[SelectorVector]) -> None:
    done = CliRunner().invoke(app, ["allocators", "vectors", "--selectors"])
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [
        item.id for item in vectors
    ]
