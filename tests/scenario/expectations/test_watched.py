"""``watched``: the events must be these, in this order, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from conformance.scenario.expectations.base import Cluster, WatchEvent
from conformance.scenario.expectations.events import WatchedExpectation

LIFE = [{"ADDED": "a"}, {"MODIFIED": "a"}, {"DELETED": "a"}]


@pytest.mark.parametrize(
    ("came", "holds"),
    [
        ("ADDED a, MODIFIED a, DELETED a", True),
        ("ADDED a, MODIFIED a, MODIFIED a, DELETED a", True),
        ("ADDED a, MODIFIED a", False),
        ("ADDED a, DELETED a, MODIFIED a", False),
        ("ADDED a, ADDED a, MODIFIED a, DELETED a", False),
        ("ADDED a, MODIFIED a, DELETED a, DELETED a", False),
        ("ADDED a, MODIFIED a, MODIFIED b, MODIFIED a, DELETED a", False),
        ("ADDED a, MODIFIED b, DELETED a", False),
        ("", False),
    ],
)
def test_it_is_compared_with_all_that_came(came: str, holds: bool) -> None:
    seen = evaluate(came, LIFE)
    assert seen.holds is holds
    assert seen.finding == f"it brought {came or 'no event'}".replace(
        "MODIFIED a, MODIFIED a", "MODIFIED a"
    )


def test_none_may_be_expected() -> None:
    assert evaluate("", []).holds
    assert not evaluate("MODIFIED a", []).holds


def test_what_comes_after_something_newer_is_no_order() -> None:
    seen = evaluate("ADDED a, MODIFIED a, DELETED a", LIFE, versions=(5, 7, 6))
    assert not seen.holds
    assert "DELETED a of resourceVersion 6 came after MODIFIED a of 7" in seen.finding
    assert not evaluate("ADDED a, MODIFIED a, DELETED a", LIFE, versions=(5, 7, 7)).holds


def test_versions_that_are_no_numbers_have_no_order() -> None:
    assert evaluate("ADDED a, MODIFIED a, DELETED a", LIFE, versions=(0, 0, 0)).holds


@pytest.mark.parametrize("event", [{}, {"ADDED": "a", "DELETED": "a"}, {"BOOKMARK": "a"}])
def test_an_event_is_of_one_type(event: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        WatchedExpectation.model_validate({"watched": "w", "events": [event]})


def evaluate(came: str, events: list[dict[str, str]], versions: tuple[int, ...] = ()) -> Any:
    found = [tuple(event.split()) for event in came.split(", ") if event]
    numbers = versions or range(1, len(found) + 1)
    watched = [
        WatchEvent(kind, name, version)
        for (kind, name), version in zip(found, numbers, strict=True)
    ]
    cluster = SimpleNamespace(list_watch_events=lambda _: watched, make_canonical=lambda text: text)
    wanted = WatchedExpectation.model_validate({"watched": "w", "events": events})
    return wanted.evaluate(cast("Cluster", cluster))
