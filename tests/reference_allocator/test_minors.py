"""What the allocator of older minors does otherwise, and that the checker knows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.checks import check
from reference_allocator.gates import MINORS
from tests.reference_allocator.builders import (
    ALL,
    Json,
    claim,
    device_class,
    devices,
    first_available,
    make_snapshot,
    node,
    opaque,
    picked,
    request,
    resource_slice,
    rules,
    spec,
)

OLDER = MINORS[:-1]
INCOMPLETE = [resource_slice(devices(2), slices=2)]


def decide(
    minor: str, slices: list[Json], wanted: Json, classes: list[Json] | None = None
) -> tuple[Outcome, set[str]]:
    """What a minor's allocator does, and which rules of that minor the checker finds broken."""
    classes = classes or [device_class()]
    allocator = Allocator(ALL, slices, classes, [], kubernetes=minor)
    outcome = allocator.allocate(node(), [wanted])
    snapshot = replace(make_snapshot(slices, [wanted], classes=classes), kubernetes=minor)
    made = outcome.allocations
    return outcome, rules(check(snapshot, node(), [wanted], made)) if made else set()


def config(minor: str, wanted: Json, classes: list[Json] | None = None) -> list[Any]:
    outcome, broken = decide(minor, [resource_slice(devices(3))], wanted, classes)
    assert broken == set()
    assert outcome.allocations is not None
    return [
        (item["source"], item.get("requests"))
        for item in outcome.allocations[0]["devices"]["config"]
    ]


def test_only_1_34_allocates_from_a_pool_whose_slices_are_not_all_there() -> None:
    outcome, broken = decide("1.34", INCOMPLETE, claim(request()))
    assert picked(outcome) == ["req=dev-0"]
    assert broken == set()
    for minor in MINORS[1:]:
        assert decide(minor, INCOMPLETE, claim(request()))[0].kind == "none"


def test_nobody_gets_all_devices_of_a_pool_whose_slices_are_not_all_there() -> None:
    for minor in MINORS:
        assert decide(minor, INCOMPLETE, claim(request(everything=True)))[0].kind == "error"


def test_all_devices_of_an_incomplete_pool_are_an_error_to_the_checker_of_1_34_too() -> None:
    outcome, _ = decide("1.34", [resource_slice(devices(2))], claim(request(everything=True)))
    wanted = claim(request(everything=True))
    assert outcome.allocations is not None
    snapshot = replace(make_snapshot(INCOMPLETE, [wanted]), kubernetes="1.34")
    assert "pool-incomplete" in rules(check(snapshot, node(), [wanted], outcome.allocations))


def test_an_allocation_from_an_incomplete_pool_breaks_a_rule_of_later_minors() -> None:
    wanted = claim(request())
    made = decide("1.34", INCOMPLETE, wanted)[0].allocations
    assert made is not None
    snapshot = replace(make_snapshot(INCOMPLETE, [wanted]), kubernetes="1.35")
    assert "pool-incomplete" in rules(check(snapshot, node(), [wanted], made))


def test_older_minors_name_the_requests_of_a_configuration_that_is_for_all() -> None:
    both = [request("a"), request("b")]
    own = claim(*both, config=[{"requests": ["a", "b"], **opaque("x")}, opaque("y")])
    classes = [device_class(config=[opaque("z")])]
    assert config("1.37", own, classes) == [
        ("FromClass", None),
        ("FromClaim", None),
        ("FromClaim", None),
    ]
    for minor in OLDER:
        assert config(minor, own, classes) == [
            ("FromClass", ["a", "b"]),
            ("FromClaim", ["a", "b"]),  # once for each request
            ("FromClaim", ["a", "b"]),
            ("FromClaim", None),
        ]


@pytest.mark.parametrize("named", [["a"], ["a/one"], ["a", "a/one"]])
def test_an_alternative_named_twice_is_listed_once(named: list[str]) -> None:
    wanted = claim(first_available("a", one=spec()), config=[{"requests": named, **opaque("x")}])
    assert config("1.36", wanted) == [("FromClaim", named)]
    assert config("1.37", wanted) == [("FromClaim", None)]


def test_what_an_older_minor_writes_breaks_the_rule_of_the_latest() -> None:
    wanted = claim(request(), config=[{"requests": ["req"], **opaque("x")}])
    slices = [resource_slice(devices(1))]
    for minor, other in (("1.36", "1.37"), ("1.37", "1.36")):
        made = decide(minor, slices, wanted)[0].allocations
        assert made is not None
        snapshot = replace(make_snapshot(slices, [wanted]), kubernetes=other)
        assert rules(check(snapshot, node(), [wanted], made)) == {"config"}
