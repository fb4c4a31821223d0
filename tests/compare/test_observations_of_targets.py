from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.compare.compare_scenarios import MAX_DIFFERENCES, compare_observations
from conformance.jsondiff import UNORDERED, differences
from conformance.results.events.scenario import Outcome, ScenarioFinished
from tests.report.builders import finished, planned, step


def saw(*observed: Mapping[str, Any], outcome: Outcome = Outcome.PASSED) -> ScenarioFinished:
    scenario = planned()
    return finished(
        scenario, outcome, steps=(step(scenario.id, title="expect", observed=tuple(observed)),)
    )


def test_the_same_observations_have_no_difference() -> None:
    assert compare_observations(saw({"a": [1, {"b": None}]}), saw({"a": [1, {"b": None}]})) == ()


def test_a_difference_names_step_path_and_both_values() -> None:
    (found,) = compare_observations(saw({"devices": [1, 2]}), saw({"devices": [1, 3]}))
    assert found.step == 0
    assert str(found) == "expect: $[0].devices[1] is 2, on the reference 3"


@pytest.mark.parametrize(
    ("left", "right", "path"),
    [
        pytest.param({"a": 1}, {}, "$.a", id="absent on the reference"),
        pytest.param({}, {"a": None}, "$.a", id="null is not absent"),
        pytest.param([1], [1, 2], "$[1]", id="shorter"),
        pytest.param([1, 2], [2, 1], "$[0]", id="order counts"),
        pytest.param(True, 1, "$", id="true is not one"),
        pytest.param("1", 1, "$", id="text is no number"),
        pytest.param({"a": {}}, {"a": []}, "$.a", id="object is no list"),
    ],
)
def test_a_small_difference_is_found(left: Any, right: Any, path: str) -> None:
    assert next(differences(left, right))[0] == path


def test_an_unordered_list_is_a_multiset() -> None:
    left = {UNORDERED: [{"x": 1}, "a", "a"]}
    assert list(differences(left, {UNORDERED: ["a", {"x": 1}, "a"]})) == []
    assert list(differences(left, {UNORDERED: ["a", {"x": 1}, "b"]})) == [
        ("$.unordered", ["a"], ["b"])
    ]
    nested = {UNORDERED: [{UNORDERED: [1, 2]}, 3]}
    assert list(differences(nested, {UNORDERED: [3, {UNORDERED: [2, 1]}]})) == []


def test_an_outcome_that_differs_is_a_difference() -> None:
    found = compare_observations(saw({}, outcome=Outcome.FAILED), saw({}))
    assert [(item.title, item.target, item.reference) for item in found] == [
        ("outcome", "failed", "passed")
    ]


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.LOST])
def test_what_did_not_run_is_not_compared(outcome: Outcome) -> None:
    assert compare_observations(saw({"a": 1}, outcome=outcome), saw({"a": 2})) == ()
    assert compare_observations(saw({"a": 1}), saw({"a": 2}, outcome=outcome)) == ()


def test_steps_that_were_not_reached_are_not_listed() -> None:
    whole = finished(steps=(step("core/one"), step("core/one", 1, observed=({"a": 1},))))
    part = finished(outcome=Outcome.FAILED, steps=(step("core/one"),))
    assert [item.title for item in compare_observations(part, whole)] == ["outcome"]


def test_no_more_differences_than_anybody_reads() -> None:
    left = saw({str(number): 1 for number in range(1000)})
    right = saw({str(number): 2 for number in range(1000)})
    assert len(compare_observations(left, right)) == MAX_DIFFERENCES


Json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.lists(inner, max_size=3).map(lambda items: {UNORDERED: items})
    ),
    max_leaves=12,
)


def shuffled(value: Any, rng: random.Random) -> Any:
    """The value with unordered lists and keys in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        rng.shuffle(items)
        changed = {key: shuffled(item, rng) for key, item in items}
        if set(changed) == {UNORDERED} and isinstance(changed[UNORDERED], list):
            rng.shuffle(changed[UNORDERED])
        return changed
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


@given(value=Json, rng=st.randoms(use_true_random=False))
def test_another_order_where_order_has_no_meaning_is_no_difference(
    value: Any, rng: random.Random
) -> None:
    assert list(differences(value, shuffled(copy.deepcopy(value), rng))) == []


@given(left=Json, right=Json)
def test_differences_are_symmetric(left: Any, right: Any) -> None:
    one = [(path, a, b) for path, a, b in differences(left, right)]
    two = [(path, b, a) for path, a, b in differences(right, left)]
    assert one == two
