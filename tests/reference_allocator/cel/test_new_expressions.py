"""What the API server says of new expressions."""

from __future__ import annotations

import pytest

from reference_allocator.cel import (
    COST_LIMIT,
    CelFeatures,
    ExpressionProblem,
    compile_selector,
    validate_new_expression,
)

COMPILE = (
    "compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n"
    " | x\n"
    " | ^"
)


def test_a_valid_expression_has_no_problem() -> None:
    assert validate_new_expression('device.driver == "a"') == []


def test_length_counts_in_bytes_and_stops_before_compiling() -> None:
    problem = ExpressionProblem("FieldValueTooLong", "Too long: may not be more than 10240 bytes")
    assert validate_new_expression("(" * 10_241) == [problem]
    assert validate_new_expression('"' + "\u00e9" * 5_120 + '"') == [problem]
    assert validate_new_expression("true" + " " * (10_240 - 4)) == []


@pytest.mark.parametrize(
    ("expression", "shown", "detail"),
    [
        ("x", '"x"', COMPILE),
        ("1", '"1"', "must evaluate to bool or the unknown type, not int"),
        ("1 + \t1", '"1 + \\t1"', "must evaluate to bool or the unknown type, not int"),
    ],
)
def test_what_does_not_compile_is_an_invalid_value(
    expression: str, shown: str, detail: str
) -> None:
    assert validate_new_expression(expression) == [
        ExpressionProblem("FieldValueInvalid", f"Invalid value: {shown}: {detail}")
    ]


def test_a_constant_that_cannot_be_evaluated_is_an_internal_error() -> None:
    (problem,) = validate_new_expression('int("x") == 1')
    assert problem.reason == "InternalError"
    assert problem.message.startswith("Internal error: program instantiation failed: ")


def test_what_can_cost_too_much_is_forbidden() -> None:
    expensive = (
        "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c,"
        " device.attributes.all(d, a + b == c + d))))"
    )
    assert compile_selector(expensive).max_cost > COST_LIMIT
    problem = ExpressionProblem("FieldValueForbidden", "Forbidden: too complex, exceeds cost limit")
    assert validate_new_expression(expensive) == [problem]


def test_gates_and_minor_decide_although_stored_expressions_ignore_them() -> None:
    expression = "device.allowMultipleAllocations"
    assert validate_new_expression(expression, CelFeatures(consumable_capacity=True)) == []
    (problem,) = validate_new_expression(expression, CelFeatures(consumable_capacity=False))
    assert "undefined field 'allowMultipleAllocations'" in problem.message
    sort = "[2, 1].sort() == [1, 2]"
    assert validate_new_expression(sort, CelFeatures(kubernetes="1.35")) == []
    assert validate_new_expression(sort, CelFeatures(kubernetes="1.34")) != []


def test_a_derived_attribute_may_have_other_types() -> None:
    assert validate_new_expression("1", derived=True) == []
    (problem,) = validate_new_expression("1.5", derived=True)
    assert problem.message.startswith('Invalid value: "1.5": must evaluate to a primitive scalar')
