"""A refusal names the field that is asked for, or one below it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from conformance.scenario.expectations.base import Cluster, Refusal
from conformance.scenario.expectations.conditions import explain_differences
from conformance.scenario.expectations.rejected import RejectedExpectation

WANTED = "spec.devices.requests[1]"


class Refusing:
    """A cluster that refuses whatever it gets."""

    def __init__(self, field: str) -> None:
        self._field = field

    def make_canonical(self, text: str) -> str:
        return text

    def try_create(self, _: object, account: str | None) -> Refusal:
        return Refusal(422, "Invalid", "no", ((self._field, "Duplicate value"),))


@pytest.mark.parametrize(
    ("named", "holds"),
    [
        (WANTED, True),
        (f"{WANTED}.name", True),
        (f"{WANTED}[0]", True),
        ("spec.devices.requests[10]", False),
        ("spec.devices", False),
    ],
)
def test_a_field_is_named_by_itself_or_by_what_is_in_it(named: str, holds: bool) -> None:
    expectation = RejectedExpectation.model_validate({"rejected": {"object": {}, "field": WANTED}})
    seen = expectation.evaluate(cast("Cluster", Refusing(named)))
    assert seen.holds is holds
    if holds:  # So that minors that name it differently observe the same.
        assert seen.observed["fields"] == [WANTED]


FOUND: dict[str, Any] = {"a": {"b": [1, {"c": "x", "d": None}]}, "on": True, "n": 1}


@pytest.mark.parametrize(
    "expected",
    [{}, {"a": {}}, {"a": {"b": [1, {"c": "x"}]}}, {"on": True}, {"a": {"b": [1, {"d": None}]}}],
)
def test_a_part_matches(expected: dict[str, Any]) -> None:
    assert list(explain_differences(expected, FOUND)) == []


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ({"z": 1}, "$.z: expected 1, found nothing"),
        ({"a": {"b": [1]}}, "$.a.b: expected 1 elements, found 2"),
        ({"a": {"b": [1, {"c": "y"}]}}, "$.a.b[1].c: expected 'y', found 'x'"),
        ({"a": [1]}, "$.a: expected a list"),
        ({"n": {"x": 1}}, "$.n: expected an object, found 1"),
        ({"n": True}, "$.n: expected True, found 1"),
        ({"on": 1}, "$.on: expected 1, found True"),
    ],
)
def test_a_difference_names_its_path(expected: dict[str, Any], says: str) -> None:
    [line] = explain_differences(expected, FOUND)
    assert line.startswith(says)
