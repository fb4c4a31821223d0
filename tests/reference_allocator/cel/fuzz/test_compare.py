"""The random comparison itself: what it does when Go dies, and what it asks of older minors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.reference_allocator.cel.answers import ours
from tests.reference_allocator.cel.fuzz import compare
from tests.reference_allocator.cel.fuzz.corners import CORNERS
from tests.reference_allocator.cel.fuzz.questions import question

ORACLE = """#!{python}
import json, sys, time
for line in sys.stdin:
    name = json.loads(line)["id"]
    if name == "hangs":
        time.sleep(60)
    if name == "dies":
        bytearray({memory})
    print(json.dumps({{"id": name, "match": True}}), flush=True)
"""


@pytest.fixture
def oracle(tmp_path: Path) -> Path:
    path = tmp_path / "oracle"
    path.write_text(ORACLE.format(python=sys.executable, memory=2**40), encoding="utf-8")
    path.chmod(0o755)
    return path


def test_one_question_that_takes_all_memory_costs_no_other_answer(oracle: Path) -> None:
    names = ["a", "dies", "b", "dies"]
    answers = compare.ask(oracle, [{"id": name} for name in names])
    assert answers == [
        {"id": "a", "match": True},
        {"exhausted": True},
        {"id": "b", "match": True},
        {"exhausted": True},
    ]


def test_one_question_that_never_ends_costs_no_other_answer(
    oracle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "_SECONDS", 1)
    answers = compare.ask(oracle, [{"id": name} for name in ("a", "hangs", "b")])
    assert [item.get("id", "exhausted") for item in answers] == ["a", "exhausted", "b"]


def test_a_seed_and_a_number_name_a_question_for_good() -> None:
    assert question("1", 7) == question("1", 7) != question("1", 8)


@pytest.mark.parametrize("corner", CORNERS)
def test_a_corner_asks_many_questions_that_all_have_an_answer(corner: str) -> None:
    corner_questions = [question("1", number, corner) for number in range(20)]
    assert len({item["expression"] + str(item["device"]) for item in corner_questions}) > 10
    for item in corner_questions:
        assert set(ours(item)) & {"match", "attribute", "error", "compileError"}


def test_older_minors_are_asked_for_no_endless_lists() -> None:
    device = {"driver": "", "attributes": {"n": {"int": 2**63 - 1}, "l": {"ints": [1]}}}
    item = {"expression": "lists.range(9223372036854775807) == []", "device": device}
    older_question = compare.older(item, "1.35")
    assert older_question["expression"] == "lists.range(1000) == []"
    assert older_question["device"]["attributes"] == {"n": {"int": 5}}
