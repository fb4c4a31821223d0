"""cel-python, which shares no code with ours, against our evaluator."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from reference_allocator.cel import CelDevice
from reference_allocator.cel.witness import second_opinion
from reference_allocator.wire import answer_cel
from tests.reference_allocator.cel.answers import GOLDEN, lines, ours
from tests.reference_allocator.cel.fuzz.questions import question
from tests.scenario.sampling import SAMPLE, sample

KNOWN = {
    r"string\(.*\d\.\d|string\(1000000\.0\)": "it writes numbers and times as Python does",
    r"string\((true|false|has)": "it writes bools as Python does",
    r"(true|false) == dyn\(1\)": "its bools are numbers",
    r"\'\'\'a\nb": "it takes a line's end in a long string for a backslash and n",
}
"""A pattern of expressions -> why cel-python answers otherwise; Kubernetes answers as we do."""


def questions() -> Iterator[dict[str, Any]]:
    """Those that Kubernetes' answers are recorded for, and random ones."""
    for path in sorted(GOLDEN.glob("*.in.ndjson")):
        yield from lines(path)
    yield from (question("witness", number) for number in range(1500))
    for expression in ("true == dyn(1)", "string(false) >= 'a'"):
        yield {"expression": expression, "device": {"driver": "d"}}


@pytest.mark.everything
def test_cel_python_contradicts_nowhere_but_in_what_is_known() -> None:
    agreed, contradictions = judged(list(questions()))
    assert agreed > 700
    assert contradictions == set(KNOWN.values())


def test_cel_python_contradicts_nothing_of_a_sample() -> None:
    agreed, _ = judged(sample(list(questions()), 500, "witness"))
    assert agreed > 50


def judged(asked_of_both: list[dict[str, Any]]) -> tuple[int, set[str]]:
    """In how many cel-python agrees, and the reasons for which it did not where it did not."""
    agreed, contradictions = 0, set()
    for asked_question in asked_of_both:
        answer = ours(asked_question)
        if "match" not in answer:
            continue
        expression, device = asked_question["expression"], asked_question["device"]
        opinion = second_opinion(expression, CelDevice.from_api(device["driver"], device))
        if opinion is None or opinion is answer["match"]:
            agreed += opinion is not None
            continue
        reasons = [reason for pattern, reason in KNOWN.items() if re.search(pattern, expression)]
        assert reasons, f"{expression}: {answer['match']}, cel-python: {opinion}; {SAMPLE}"
        contradictions.update(reasons)
    return agreed, contradictions


@pytest.mark.parametrize(
    ("expression", "opinion"),
    [
        ('device.attributes["d"].n == 3 && device.driver == "d"', True),
        ('has(device.attributes["other"].n)', False),
        ('device.attributes["d"].v == "1.2.3"', None),
        ('device.attributes["d"].v.isLessThan(semver("2.0.0"))', None),
        ('device.capacity["d"].mem == quantity("1Gi")', None),
        ("device.attributes['d'].nope == 1", None),
        ("1 +", None),
        ("(" * 240 + "true" + ")" * 240, None),
    ],
)
def test_the_witness_speaks_of_what_it_knows(expression: str, opinion: bool | None) -> None:
    device = {
        "attributes": {"n": {"int": 3}, "v": {"version": "1.2.3"}},
        "capacity": {"mem": {"value": "1Gi"}},
    }
    limit = sys.getrecursionlimit()
    assert second_opinion(expression, CelDevice.from_api("d", device)) is opinion
    assert sys.getrecursionlimit() == limit


def test_the_command_tells_what_the_witness_says() -> None:
    asked_question = {"id": "a", "expression": "true == dyn(1)", "device": {"driver": "d"}}
    answer = json.loads(answer_cel(json.dumps(asked_question), witness=True))
    assert (answer["match"], answer["witness"]) == (False, True)
    assert "witness" not in json.loads(answer_cel(json.dumps(asked_question)))
