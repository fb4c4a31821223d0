"""Problems are drawn from a seed, are about what they say, and an API server takes them."""

from __future__ import annotations

import json

import pytest

from conformance.fuzz.problem import Generator, Problem

LISTS = ("slices", "deviceClasses", "taintRules", "claims", "allocated", "pods")
SHOWS = {
    "prioritizedList": '"firstAvailable"',
    "partitionableDevices": '"consumesCounters"',
    "deviceTaints": '"taints"',
    "deviceTaintRules": '"deviceSelector"',
    "extendedResource": '"limits"',
    "pods": '"pod-1"',
    "deviceBindingAndStatus": '"bindingConditions"',
    "adminAccess": '"adminAccess": true',
    "all": '"allocationMode": "All"',
    "constraints": '"constraints"',
    "inUse": '"shareID"',
    "config": '"opaque"',
}


@pytest.fixture(scope="module")
def drawn() -> list[Problem]:
    generator = Generator("1.37.1", {})
    return [generator.draw("a", number) for number in range(400)]


def test_a_problem_is_about_two_or_three_features_and_no_other(drawn: list[Problem]) -> None:
    seen = set()
    for problem in drawn:
        text = json.dumps({name: problem.document[name] for name in LISTS})
        for feature, field in SHOWS.items():
            if field in text:
                assert feature in problem.focus
                seen.add(feature)
    assert seen == set(SHOWS)
    assert {len(problem.focus) for problem in drawn} == {2, 3}


def test_a_problem_can_be_drawn_again(drawn: list[Problem]) -> None:
    assert Generator("1.37.1", {}).draw("a", 7) == drawn[7]


def test_a_problem_for_a_scheduler_of_another_minor_is_judged_by_its_rules(
    drawn: list[Problem],
) -> None:
    problem = Generator("1.37.1", {}, "1.38.0-beta.0").draw("a", 7)
    assert problem.document["kubernetes"] == "1.38.0-beta.0"
    assert problem.document["features"]["fractionalCapacityRange"]
    assert problem.document["slices"] == drawn[7].document["slices"]  # the API server's are drawn


def test_nothing_is_about_a_gate_that_is_off() -> None:
    generator = Generator("1.34.0", {})
    focus = {name for number in range(80) for name in generator.draw("a", number).focus}
    assert "prioritizedList" in focus
    gated = {"consumableCapacity", "deviceTaintRules", "deviceTaints", "extendedResource"}
    assert not focus & gated
