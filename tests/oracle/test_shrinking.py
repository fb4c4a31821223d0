"""A failing problem is made small without losing what makes it fail."""

from __future__ import annotations

from typing import Any

from tests.oracle.shrink import shrink

Json = dict[str, Any]


def test_only_what_matters_is_left() -> None:
    problem = {"id": "x", "items": [{"n": index, "more": [1, 2]} for index in range(40)], "z": 1}

    def fails(candidate: Json) -> bool:
        return any(item.get("n") == 27 for item in candidate.get("items", ()))

    assert shrink(problem, fails) == {"id": "x", "items": [{"n": 27}]}


def test_parts_that_only_fail_together_stay_together() -> None:
    def fails(candidate: Json) -> bool:
        return {3, 17} <= set(candidate.get("items", ()))

    assert shrink({"items": list(range(20))}, fails) == {"items": [3, 17]}


def test_the_problem_itself_is_not_changed() -> None:
    problem = {"items": [1, 2, 3]}
    shrink(problem, lambda candidate: True)
    assert problem == {"items": [1, 2, 3]}


def test_stops_when_the_budget_is_spent() -> None:
    tried: list[Json] = []

    def fails(candidate: Json) -> bool:
        tried.append(candidate)
        return False

    shrink({"items": list(range(100))}, fails, budget=7)
    assert len(tried) == 7


def test_names_are_kept() -> None:
    problem = {"claims": [{"metadata": {"name": "a", "uid": "b"}, "spec": {}}]}
    assert shrink(problem, lambda candidate: bool(candidate.get("claims"))) == {
        "claims": [{"metadata": {"name": "a"}}]
    }
