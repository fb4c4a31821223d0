"""Lines that cannot be read are told with their path, and end nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.cli.app import app
from reference_allocator.wire import answer_allocate, answer_cel
from tests.oracle.golden import read
from tests.reference_allocator.cel.answers import GOLDEN, comparable, lines, ours

Json = dict[str, Any]

NODE: Json = {"metadata": {"name": "node-a"}}
POOL: Json = {"name": "p", "generation": 1, "resourceSliceCount": 1}


def published(**device: Any) -> Json:
    """A problem with one slice of one device."""
    spec = {"driver": "d", "pool": POOL, "nodeName": "node-a", "devices": [{"name": "x", **device}]}
    return {"slices": [{"metadata": {"name": "s"}, "spec": spec}], "nodes": [NODE]}


def asking(**exactly: Any) -> Json:
    """A problem with one claim with one request."""
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", **exactly}}]}
    return {"claims": [{"metadata": {"name": "a"}, "spec": {"devices": devices}}], "nodes": [NODE]}


BAD: dict[str, tuple[Json, str]] = {
    "unknown field of the line": ({"slics": []}, "$.slics: unknown field"),
    "unknown feature": ({"features": {"AdminAccess": True}}, "$.features.AdminAccess"),
    "feature that is no boolean": ({"features": {"adminAccess": 1}}, "$.features.adminAccess"),
    "slices that are no list": ({"slices": {}}, "$.slices: expected a list"),
    "null among slices": ({"slices": [None]}, "$.slices[0]: expected an object, got null"),
    "slice without spec": ({"slices": [{"metadata": {"name": "s"}}]}, "$.slices[0].spec"),
    "unknown field of a device": (published(basic={}), "$.slices[0].spec.devices[0].basic"),
    "attribute of the wrong type": (
        published(attributes={"a": {"int": "1"}}),
        "$.slices[0].spec.devices[0].attributes.a.int: expected an integer",
    ),
    "integer beyond 64 bits": (
        published(attributes={"a": {"int": 2**63}}),
        "$.slices[0].spec.devices[0].attributes.a.int",
    ),
    "quantity that does not parse": (
        published(capacity={"m": {"value": "40 GB"}}),
        "$.slices[0].spec.devices[0].capacity.m.value",
    ),
    "time that does not parse": (
        published(taints=[{"key": "k", "effect": "NoSchedule", "timeAdded": "yesterday"}]),
        "$.slices[0].spec.devices[0].taints[0].timeAdded",
    ),
    "too many attributes": (
        published(attributes={f"a{index}": {"int": 1} for index in range(33)}),
        "at most 32 are allowed",
    ),
    "too many attributes and capacities together": (
        published(
            attributes={f"a{index}": {"int": 1} for index in range(20)},
            capacity={f"c{index}": {"value": "1"} for index in range(20)},
        ),
        "40 attributes and capacities",
    ),
    "too many tolerations": (
        asking(tolerations=[{"operator": "Exists"}] * 17),
        "$.claims[0].spec.devices.requests[0].exactly.tolerations: 17 items",
    ),
    "count that is no integer": (
        asking(count=1.5),
        "$.claims[0].spec.devices.requests[0].exactly.count: expected an integer",
    ),
    "node without a name": ({"nodes": [{}]}, "$.nodes[0].metadata.name: required value"),
    "unknown allocator": ({"allocator": "best"}, "$.allocator"),
    "negative repeat": ({"repeat": -1}, "$.repeat"),
    "absurd repeat": ({"repeat": 10**12}, "$.repeat"),
    "id that is no string": ({"id": 7}, "$.id: expected a string"),
}


@pytest.mark.parametrize(("parts", "expected"), BAD.values(), ids=BAD.keys())
def test_bad_problem_is_told_with_its_path(parts: Json, expected: str) -> None:
    answer = json.loads(answer_allocate(json.dumps({"id": "bad", **parts})))
    assert expected in answer["invalid"]
    assert answer["id"] == ("bad" if isinstance(parts.get("id", ""), str) else "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "not JSON"),
        ("{", "not JSON: "),
        ("[]", "expected an object, got a list"),
        ('{"id": "a", "id": "b"}', 'field "id" is given twice'),
        ('{"id": "a", "repeat": NaN}', "not JSON: NaN"),
        ('{"id": "a", "repeat": ' + "9" * 5000 + "}", "not JSON"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        (b'{"id": "\xff"}', "not UTF-8"),
    ],
)
def test_what_is_no_json_object_is_told(line: str | bytes, expected: str) -> None:
    assert expected in json.loads(answer_allocate(line))["invalid"]


def test_deeply_nested_parameters_of_a_driver_are_only_data() -> None:
    parameters: Json = {}
    for _ in range(50):
        parameters = {"more": parameters}
    problem = asking()
    config = {"opaque": {"driver": "d", "parameters": parameters}}
    problem["claims"][0]["spec"]["devices"]["config"] = [config]
    assert "invalid" not in json.loads(answer_allocate(json.dumps({"id": "a", **problem})))


def test_repeat_changes_nothing_but_time() -> None:
    question = read("found.in")[0]
    once = json.loads(answer_allocate(json.dumps(question)))
    often = json.loads(answer_allocate(json.dumps({**question, "repeat": 3})))
    for answer in (once, often):
        assert all(node.pop("ns") > 0 for node in answer["nodes"])
        assert all(node.pop("steps") > 0 for node in answer["nodes"])
    assert once == often


CEL_BAD: dict[str, tuple[Json, str]] = {
    "unknown field": ({"expr": "true"}, "$.expr: unknown field"),
    "unknown field of the device": ({"device": {"name": "x"}}, "$.device.name"),
    "attribute of the wrong type": (
        {"device": {"attributes": {"a": {"bool": "yes"}}}},
        "$.device.attributes.a.bool",
    ),
    "unknown environment": ({"env": "Future"}, "$.env"),
    "negative limit": ({"costLimit": -1}, "$.costLimit"),
    "expression that is no string": ({"expression": 1}, "$.expression"),
}


@pytest.mark.parametrize(("parts", "expected"), CEL_BAD.values(), ids=CEL_BAD.keys())
def test_bad_question_about_cel_is_told_with_its_path(parts: Json, expected: str) -> None:
    answer = json.loads(answer_cel(json.dumps({"id": "bad", **parts})))
    assert answer["id"] == "bad"
    assert answer["invalid"].startswith(expected)


def test_cel_answers_match_error_and_compile_error() -> None:
    def ask(expression: str) -> Json:
        answer: Json = json.loads(
            answer_cel(json.dumps({"id": "a", "expression": expression, "device": {"driver": "d"}}))
        )
        return answer

    assert ask('device.driver == "d"')["match"] is True
    assert ask('device.attributes["d"].x == 1')["error"] == "no such key: x"
    assert ask("device.driver ==")["compileError"].startswith("compilation failed: ERROR: ")
    assert ask("true")["type"] == "bool"


def test_command_answers_each_line_and_goes_on_after_a_bad_one(tmp_path: Path) -> None:
    good = json.dumps(read("found.in")[0])
    questions = tmp_path / "questions.ndjson"
    questions.write_text(f"{good}\nnonsense\n\n{good}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["allocate", str(questions)])
    assert result.exit_code == 0
    kinds = ["invalid" in json.loads(line) for line in result.stdout.splitlines()]
    assert kinds == [False, True, False]


def test_command_reads_standard_input() -> None:
    question = json.dumps({"id": "q", "expression": "true", "device": {"driver": "d"}})
    result = CliRunner().invoke(app, ["cel"], input=question + "\n")
    assert json.loads(result.stdout)["match"] is True


def test_lines_about_cel_are_answered_like_questions_asked_directly() -> None:
    for name in ("selectors", "gates", "devices", "derived", "limits"):
        for question in lines(GOLDEN / f"{name}.in.ndjson"):
            answered = json.loads(answer_cel(json.dumps(question)))
            assert comparable(answered) == comparable(ours(question)), question
