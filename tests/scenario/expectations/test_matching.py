"""Partial match: what is given must be there, and the difference is pinpointed."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.scenario.expectations.conditions import differences

FOUND: dict[str, Any] = {"a": {"b": [1, {"c": "x", "d": None}]}, "on": True, "n": 1}


@pytest.mark.parametrize(
    "expected",
    [{}, {"a": {}}, {"a": {"b": [1, {"c": "x"}]}}, {"on": True}, {"a": {"b": [1, {"d": None}]}}],
)
def test_a_part_matches(expected: dict[str, Any]) -> None:
    assert list(differences(expected, FOUND)) == []


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
    [line] = differences(expected, FOUND)
    assert line.startswith(says)
