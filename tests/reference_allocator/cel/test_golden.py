"""Our answers against those of the real environment, which are kept as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reference_allocator.cel import (
    COST_LIMIT,
    CelCompileError,
    CelDevice,
    CelFeatures,
    CelRuntimeError,
    compile_derived,
    compile_selector,
)

GOLDEN = Path(__file__).parent / "golden"
KNOWN: dict[str, dict[str, str]] = json.loads((GOLDEN / "known-differences.json").read_text())
NAMES = ("selectors", "gates", "devices", "derived", "limits")


def lines(name: str) -> list[dict[str, Any]]:
    text = (GOLDEN / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def cases() -> list[Any]:
    found: list[Any] = []
    for name in NAMES:
        answers = {answer["id"]: answer for answer in lines(f"{name}.out.ndjson")}
        found += [
            pytest.param(question, answers[question["id"]], id=question["id"])
            for question in lines(f"{name}.in.ndjson")
        ]
    return found


def features(question: dict[str, Any]) -> CelFeatures:
    if question.get("env", "StoredExpressions") == "StoredExpressions":
        return CelFeatures()
    gates = question.get("features", {})
    return CelFeatures(
        consumable_capacity=gates.get("consumableCapacity", False),
        list_type_attributes=gates.get("listTypeAttributes", False),
        stored=False,
    )


def ours(question: dict[str, Any]) -> dict[str, Any]:
    """The answer in the oracle's format; the cost as far as an evaluation without limit tells."""
    expression, options = question["expression"], features(question)
    limit = question.get("costLimit", COST_LIMIT)
    answer: dict[str, Any] = {}
    try:
        if question.get("derived"):
            derived = compile_derived(expression, features=options, cost_limit=limit)
            answer = {"type": derived.type.declared, "maxCost": derived.max_cost}
            device = CelDevice.from_api(question["device"]["driver"], question["device"])
            attribute = derived.attribute(device)
            # Go leaves an empty list out of the JSON text.
            answer["attribute"] = {name: value for name, value in attribute.items() if value != []}
            return answer
        selector = compile_selector(expression, features=options, cost_limit=limit)
        answer = {"type": selector.type.declared, "maxCost": selector.max_cost}
        device = CelDevice.from_api(question["device"]["driver"], question["device"])
        answer["match"] = selector.matches(device)
        answer["cost"] = selector.evaluate_with_cost(device)[1]
    except CelCompileError as error:
        return {"compileError": str(error)}
    except CelRuntimeError as error:
        answer["error"] = str(error)
    return answer


def difference(question: dict[str, Any], expected: dict[str, Any]) -> str:
    """What differs, as text; empty if nothing does. Costs are compared where there is a value."""
    keys = ("match", "attribute", "error", "compileError", "type", "maxCost")
    wanted = {key: expected[key] for key in keys if key in expected}
    actual = ours(question)
    if "match" in expected and question["expression"] not in KNOWN["cost"]:
        wanted["cost"] = expected["cost"]
    else:
        actual.pop("cost", None)
    if actual == wanted:
        return ""
    return f"{question['expression']}\nexpected {wanted}\nactual   {actual}"


@pytest.mark.parametrize(("question", "expected"), cases())
def test_answers_like_kubernetes(question: dict[str, Any], expected: dict[str, Any]) -> None:
    found = difference(question, expected)
    if question["expression"] in KNOWN["answer"]:
        assert found, "this is no difference any more: remove it from known-differences.json"
    else:
        assert not found, found


def test_every_known_difference_has_a_question() -> None:
    asked = {question["expression"] for name in NAMES for question in lines(f"{name}.in.ndjson")}
    assert set(KNOWN["answer"]) | set(KNOWN["cost"]) <= asked


@pytest.mark.parametrize(
    ("question", "expected"), [case for case in cases() if "match" in case.values[1]]
)
def test_generated_code_and_interpreter_agree(
    question: dict[str, Any], expected: dict[str, Any]
) -> None:
    options = features(question)
    selector = compile_selector(question["expression"], features=options)
    device = CelDevice.from_api(question["device"]["driver"], question["device"])
    assert selector.matches(device) is selector.interpret(device) is expected["match"]
