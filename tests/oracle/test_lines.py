"""Lines that cannot be read are told with their path, and end nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.cli.app import app
from kube.base.errors import UsageError
from reference_allocator.wire import answer_allocate, answer_cel
from tests.oracle.golden import read

Json = dict[str, Any]

NODE: Json = {"metadata": {"name": "node-a"}}
POOL: Json = {"name": "p", "generation": 1, "resourceSliceCount": 1}


TAINT: Json = {"key": "k", "effect": "NoSchedule"}
RESULT: Json = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
COSTLY = (
    f"{[1] * 60}.all(i, device.attributes.all(k, device.attributes[k].all(j, j == device.driver)))"
)
"""More than half of what the derived attributes of a claim may cost."""


def slice_with(*devices: Json) -> Json:
    """A slice of node-a."""
    spec = {"driver": "d", "pool": POOL, "nodeName": "node-a", "devices": list(devices)}
    return {"metadata": {"name": "s"}, "spec": spec}


def published(**device: Any) -> Json:
    """A problem with one slice of one device."""
    return {"slices": [slice_with({"name": "x", **device})], "nodes": [NODE]}


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
        "$.slices[0].spec.devices[0]: 33: the total number of attributes and capacities",
    ),
    "too many attributes and capacities together": (
        published(
            attributes={f"a{index}": {"int": 1} for index in range(20)},
            capacity={f"c{index}": {"value": "1"} for index in range(20)},
        ),
        "$.slices[0].spec.devices[0]: 40: the total number of attributes and capacities",
    ),
    "too many devices of a slice": (
        {"slices": [slice_with(*({"name": f"d{index}"} for index in range(129)))]},
        "$.slices[0].spec.devices: too many: 129: must have at most 128 items",
    ),
    "too many devices that have taints": (
        {
            "slices": [
                slice_with(*({"name": f"d{index}", "taints": [TAINT]} for index in range(65)))
            ]
        },
        "$.slices[0].spec.devices: too many: 65: must have at most 64 items",
    ),
    "name that is too long": (
        published(attributes={"a": {"string": "x" * 65}}),
        "$.slices[0].spec.devices[0].attributes.a.string: too long",
    ),
    "too many selectors": (
        asking(selectors=[{"cel": {"expression": "true"}}] * 33),
        "$.claims[0].spec.devices.requests[0].exactly.selectors: too many: 33",
    ),
    "selector that is too long": (
        asking(selectors=[{"cel": {"expression": "true" + " " * 10_237}}]),
        "$.claims[0].spec.devices.requests[0].exactly.selectors[0].cel.expression: too long",
    ),
    "derived attributes that cost too much together": (
        {
            **asking(
                derivedAttributes=[
                    {"name": f"a/{index}", "expression": COSTLY} for index in range(2)
                ]
            ),
            "features": {"derivedAttributes": True},
        },
        "$.claims[0].spec.devices: Forbidden: too complex, total cost of derived attribute",
    ),
    "too many selectors of a class": (
        {
            "deviceClasses": [
                {
                    "metadata": {"name": "c"},
                    "spec": {"selectors": [{"cel": {"expression": "true"}}] * 33},
                }
            ]
        },
        "$.deviceClasses[0].spec.selectors: too many: 33",
    ),
    "too many results of an allocated claim": (
        {
            "allocated": [
                {
                    "metadata": {"name": "a"},
                    "status": {"allocation": {"devices": {"results": [RESULT] * 33}}},
                }
            ]
        },
        "$.allocated[0].status.allocation.devices.results: too many: 33",
    ),
    "too many tolerations": (
        asking(tolerations=[{"operator": "Exists"}] * 17),
        "$.claims[0].spec.devices.requests[0].exactly.tolerations: too many: 17",
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


def with_parameters(levels: int) -> Json:
    """A claim whose parameters for the driver are that many lists in each other."""
    parameters: list[Any] = []
    for _ in range(levels - 1):
        parameters = [parameters]
    problem = asking()
    config = {"opaque": {"driver": "d", "parameters": parameters}}
    problem["claims"][0]["spec"]["devices"]["config"] = [config]
    return {"id": "a", **problem}


def test_nested_parameters_of_a_driver_are_only_data() -> None:
    assert "invalid" not in json.loads(answer_allocate(json.dumps(with_parameters(128))))


@pytest.mark.parametrize("levels", [129, 500, 800])
def test_parameters_that_are_nested_too_deeply_are_told_with_their_path(levels: int) -> None:
    answer = json.loads(answer_allocate(json.dumps(with_parameters(levels))))
    assert answer["invalid"] == (
        "$.claims[0].spec.devices.config[0].opaque.parameters: nested more than 128 levels deep"
    )


def test_nesting_up_to_what_the_reader_of_json_can_bear_gives_an_answer() -> None:
    line = json.dumps(with_parameters(1))
    for levels in range(900, 1100, 3):
        deep = line.replace('"parameters": []', '"parameters": ' + "[" * levels + "]" * levels)
        assert "nested" in json.loads(answer_allocate(deep))["invalid"]


def test_line_of_too_many_values_is_refused_before_it_takes_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reference_allocator.wire.lines.MAX_VALUES", 100)
    line = json.dumps({"id": "a", "slices": [{}] * 100})
    for text in (line, line.encode()):
        assert json.loads(answer_allocate(text)) == {
            "id": "",
            "invalid": "$: the line has more than 100 values",
        }


def test_repeating_a_decision_ends_at_the_time_limit() -> None:
    question = {**read("found.in")[0], "repeat": 1_000_000}
    start = time.monotonic()
    answer_allocate(json.dumps(question), timeout=0.05)
    assert time.monotonic() - start < 0.5 * (1 + len(question["nodes"]))


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
    "too many values of an attribute": (
        {"device": {"attributes": {"a": {"ints": [1] * 49}}}},
        "$.device: 49: the total number of attribute values must not exceed 48",
    ),
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


@pytest.mark.parametrize("separator", ["\n", "\x0b", "\x1c", "\x7f", "\x85", "\u2028", "\u2029"])
def test_an_answer_is_one_line_whatever_it_quotes(separator: str) -> None:
    expression = json.dumps(f"a{separator}b") + " == nope"
    question = {"id": "q", "expression": expression, "device": {"driver": "d"}}
    answer = answer_cel(json.dumps(question))
    assert len(answer.splitlines()) == 1
    question = {"id": separator, "expression": "true", "device": {"driver": "d"}}
    assert json.loads(answer_cel(json.dumps(question)))["id"] == separator


def test_command_reads_standard_input() -> None:
    question = json.dumps({"id": "q", "expression": "true", "device": {"driver": "d"}})
    result = CliRunner().invoke(app, ["cel"], input=question + "\n")
    assert json.loads(result.stdout)["match"] is True


def test_half_a_surrogate_pair_is_replaced_as_go_does() -> None:
    question = b'{"id": "\\ud800x\\ud83d\\ude00", "expression": "device.driver == \'\\udc00\'", '
    question += b'"device": {"driver": "\\udc01"}}'
    answer = json.loads(answer_cel(question))
    assert answer["id"] == "\ufffdx\U0001f600"
    assert answer["match"] is True


@pytest.mark.parametrize(("minor", "match"), [("1.36", True), ("1.37", None)])
def test_cel_command_answers_for_a_minor(tmp_path: Path, minor: str, match: bool | None) -> None:
    question = {"id": "a", "expression": "lists.range(-1) == []", "device": {"driver": "d"}}
    file = tmp_path / "questions.ndjson"
    file.write_text(json.dumps(question))
    done = CliRunner().invoke(app, ["cel", "--kubernetes", minor, str(file)])
    assert json.loads(done.stdout).get("match") is match


def test_unknown_minor_is_told() -> None:
    done = CliRunner().invoke(app, ["cel", "--kubernetes", "1.20"], input="")
    assert isinstance(done.exception, UsageError)
    assert "1.34, 1.35, 1.36, 1.37" in str(done.exception)
