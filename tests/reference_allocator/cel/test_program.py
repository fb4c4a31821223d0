"""Expressions about any JSON object, as the suite's own expectations use them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference_allocator.cel import (
    DYN,
    CelCompileError,
    CelDevice,
    CelFeatures,
    CelRuntimeError,
    CelUnsupportedError,
    compile_expression,
    compile_selector,
)
from reference_allocator.wire import answer_cel

CLAIM: dict[str, Any] = {
    "metadata": {
        "name": "c",
        "labels": {"a": "b"},
        "ownerReferences": [
            {"kind": "Pod", "controller": True},
            {"kind": "Other", "controller": False},
        ],
    },
    "spec": {"count": 2, "ratio": 1.5, "none": None},
    "status": {
        "reservedFor": [{"name": "p", "resource": "pods"}],
        "allocation": {"devices": {"results": [{"device": "gpu-0"}, {"device": "gpu-1"}]}},
    },
}


def evaluate(expression: str, value: Any = CLAIM) -> Any:
    return compile_expression(expression, {"object": DYN}).evaluate({"object": value})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("size(object.status.reservedFor) == 1", True),
        ("object.status.allocation.devices.results.map(r, r.device)", ["gpu-0", "gpu-1"]),
        ("object.metadata.ownerReferences.exists(o, o.kind == 'Pod' && o.controller)", True),
        ("object.metadata.ownerReferences.all(o, o.controller)", False),
        ("object.spec.count + 1", 3),
        ("object.spec.ratio * 2.0", 3.0),
        ("object.spec.count > 1.5", True),
        ("object.spec.none == null", True),
        ("has(object.spec.none)", True),
        ("has(object.spec.nope)", False),
        ("has(object.status.allocation) && !has(object.status.nope)", True),
        ("object.metadata.labels", {"a": "b"}),
        ("object.metadata.labels['a'].upperAscii()", "B"),
        ("object.?status.nope.orValue('default')", "default"),
        ("object.?status.nope", None),
        ("object.metadata.?name", "c"),
        ("'a' in object.metadata.labels", True),
        ("object.metadata.name.startsWith('c')", True),
        ("object.status.reservedFor[0].resource", "pods"),
        ("{'x': 1u, 'y': 2u}", {"x": 1, "y": 2}),
        ("{true: 'yes'}", {True: "yes"}),
        ("quantity('1Gi')", "1Gi"),
        ("b'a'", b"a"),
        ("object.spec.count == 2 && object.spec.ratio == 1.5", True),
    ],
)
def test_value_is_plain_python_data(expression: str, expected: Any) -> None:
    assert evaluate(expression) == expected
    assert type(evaluate(expression)) is type(expected)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.nope", "no such key: nope"),
        ("object.status.nope.deeper", "no such key: nope"),
        ("object.status.reservedFor[1]", "index out of bounds: 1"),
        ("object.metadata.name + 1", "no such overload"),
        ("object.spec.count / 0", "division by zero"),
        ("object.metadata.name.deeper", "no such key: deeper"),
        ("object.metadata.labels.all(k, v, v)", "no such overload"),
        ("object.spec.count ? 1 : 2", "no such overload"),
    ],
)
def test_evaluation_errors_read_like_cel_go(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError) as error:
        evaluate(expression)
    assert str(error.value) == message


@pytest.mark.parametrize("expression", ["nope", "object.", "object == ", "1 + 'a'", "foo(object)"])
def test_ill_formed_expressions_do_not_compile(expression: str) -> None:
    with pytest.raises(CelCompileError, match="compilation failed: ERROR: <input>:1:"):
        evaluate(expression)


def test_two_variables_are_apart() -> None:
    program = compile_expression(
        "objects.size() == 2 && object == 1", {"object": DYN, "objects": DYN}
    )
    assert program.evaluate({"object": 1, "objects": [1, 2]}) is True
    assert program.evaluate({"object": 2, "objects": [1, 2]}) is False


def test_the_data_is_not_changed() -> None:
    value = {"list": [3, 1, 2], "map": {"a": [1]}}
    evaluate("object.list.sort() + object.list.map(x, x) + object.map.a", value)
    assert value == {"list": [3, 1, 2], "map": {"a": [1]}}


def test_booleans_are_no_numbers() -> None:
    assert evaluate("object.a == 1 || object.b == false", {"a": True, "b": 0}) is False
    assert evaluate("1 in object || object.exists(x, x == 1)", [True]) is False


def test_an_expression_that_builds_a_protobuf_message_is_typed_and_not_evaluated() -> None:
    text = "google.protobuf.BoolValue{value: device.driver == 'd'}"
    selector = compile_selector(text)
    device = CelDevice.from_api("d", {})
    assert (selector.type.declared, selector.max_cost > 40) == ("wrapper(bool)", True)
    for expression in (text, f"{text} || true"):
        with pytest.raises(CelUnsupportedError, match="BoolValue"):
            compile_selector(expression).matches(device)
    assert compile_selector(f"true || {text}").matches(device)
    with pytest.raises(CelCompileError, match=r"must evaluate to bool .* not wrapper\(bool\)"):
        compile_selector(text, features=CelFeatures(kubernetes="1.36"))
    question = {"id": "a", "expression": text, "device": {"driver": "d"}}
    assert "BoolValue" in json.loads(answer_cel(json.dumps(question)))["unsupported"]
