"""The minor of a cluster decides what its selectors may use, wherever selectors are evaluated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference_allocator.allocator import Allocator
from reference_allocator.checks import check
from reference_allocator.environment import derived_environment, selector_environment
from reference_allocator.explain import explain
from reference_allocator.features import Features
from reference_allocator.gates import MINORS, nearest_minor
from reference_allocator.snapshot import Snapshot
from reference_allocator.wire import answer_allocate, answer_cel
from tests.reference_allocator.builders import (
    ALL,
    Json,
    claim,
    device,
    device_class,
    node,
    request,
    resource_slice,
)

SINCE_1_36 = 'device.attributes["gpu.example.com"].models.includes("a")'
SLICE = resource_slice([device("d", {"models": ["a", "b"]})])
CLAIM = claim(request("r", 1, SINCE_1_36))


def snapshot(kubernetes: str) -> Snapshot:
    features = Features.for_version(kubernetes, {"DRAListTypeAttributes": True})
    return Snapshot(kubernetes, features, (SLICE,), (device_class(),), (node(),), (CLAIM,))


def outcome(kubernetes: str) -> Any:
    allocator = Allocator(ALL, [SLICE], [device_class()], [], kubernetes=kubernetes)
    return allocator.allocate(node(), [CLAIM])


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("1.34", "1.34"),
        ("v1.36.2", "1.36"),
        ("1.37.0-rc.1", "1.37"),
        ("1.33.9", "1.34"),
        ("0.1", "1.34"),
        ("1.38.1", "1.37"),
        ("2.0", "1.37"),
        ("", "1.37"),
        ("latest", "1.37"),
        ("1", "1.37"),
    ],
)
def test_unknown_versions_are_taken_for_the_nearest_minor(version: str, minor: str) -> None:
    assert nearest_minor(version) == minor


@pytest.mark.parametrize("kubernetes", ["1.34.5", "1.35"])
def test_function_that_a_minor_does_not_have_is_a_fatal_error_there(kubernetes: str) -> None:
    found = outcome(kubernetes)
    assert found.kind == "error"
    assert "undeclared reference to 'includes'" in found.error


@pytest.mark.parametrize("kubernetes", ["1.36.0", "1.37.1", "1.40"])
def test_function_is_there_from_its_minor_on(kubernetes: str) -> None:
    assert outcome(kubernetes).kind == "allocated"


def test_without_a_version_selectors_are_those_of_the_latest() -> None:
    allocator = Allocator(ALL, [SLICE], [device_class()], [])
    assert allocator.allocate(node(), [CLAIM]).kind == "allocated"


def test_lists_are_no_values_before_1_36() -> None:
    wanted = claim(request("r", 1, "true"))
    allocator = Allocator(ALL, [SLICE], [device_class()], [], kubernetes="1.35")
    assert "attribute models: unsupported attribute value" in (
        allocator.allocate(node(), [wanted]).error
    )


def test_checker_and_explanation_follow_the_version_of_the_snapshot() -> None:
    (allocation,) = outcome("1.37").allocations
    assert check(snapshot("1.37"), node(), [CLAIM], [allocation]) == []
    (violation,) = check(snapshot("1.35"), node(), [CLAIM], [allocation])
    assert violation.rule == "selector"
    assert "undeclared reference to 'includes'" in violation.message
    assert "undeclared reference to 'includes'" in explain(snapshot("1.35")).text


def test_derived_attributes_are_never_those_of_a_minor_without_them() -> None:
    assert derived_environment(selector_environment(ALL, "1.34")).kubernetes == "1.37"
    assert derived_environment(selector_environment(ALL, "1.37")).kubernetes == "1.37"


def test_derived_attribute_of_a_minor_without_them_is_a_bad_question() -> None:
    line = json.dumps({"id": "a", "expression": "1", "derived": True})
    assert json.loads(answer_cel(line, kubernetes="1.36")) == {
        "id": "a",
        "invalid": "$.derived: Kubernetes 1.36 has no derived attributes",
    }


def test_problems_are_answered_for_the_version_that_is_asked_for() -> None:
    problem: Json = {
        "id": "a",
        "slices": [SLICE],
        "deviceClasses": [device_class()],
        "nodes": [node()],
        "claims": [CLAIM],
        "features": ALL.to_dict(),
    }
    outcomes = {
        minor: json.loads(answer_allocate(json.dumps(problem), kubernetes=minor))["nodes"][0][
            "outcome"
        ]
        for minor in MINORS
    }
    assert outcomes == {"1.34": "error", "1.35": "error", "1.36": "allocated", "1.37": "allocated"}
