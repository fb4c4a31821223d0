"""Deadlines of evaluations."""

from __future__ import annotations

import time

import pytest

from reference_allocator.cel import (
    DYN,
    CelDevice,
    CelInterruptedError,
    compile_derived,
    compile_expression,
    compile_selector,
)

DEVICE = CelDevice.from_api("dra.example.com", {"attributes": {"n": {"int": 1}}})
SLOW = "lists.range(100000).all(x, lists.range(100000).all(y, x + y >= 0))"
PAST = 0.0


def test_a_selector_stops_at_its_deadline() -> None:
    selector = compile_selector(SLOW)
    start = time.monotonic()
    with pytest.raises(
        CelInterruptedError, match=r"^operation interrupted: context deadline exceeded$"
    ):
        selector.matches(DEVICE, deadline=start + 0.01)
    assert time.monotonic() - start < 2


def test_nothing_absorbs_the_interruption() -> None:
    selector = compile_selector(f"true || {SLOW}")
    assert selector.matches(DEVICE, deadline=PAST)
    selector = compile_selector(f"{SLOW} || true")
    with pytest.raises(CelInterruptedError):
        selector.matches(DEVICE, deadline=PAST)


def test_a_cheap_selector_is_evaluated_even_late() -> None:
    assert compile_selector('device.driver == "dra.example.com"').matches(DEVICE, deadline=PAST)


def test_a_derived_attribute_stops_at_its_deadline() -> None:
    derived = compile_derived("size(lists.range(1000).map(x, x + 1))")
    assert derived.compute_attribute(DEVICE) == {"int": 1000}
    with pytest.raises(CelInterruptedError):
        derived.compute_attribute(DEVICE, deadline=PAST)


def test_an_expression_over_any_object_stops_at_its_deadline() -> None:
    program = compile_expression("object.all(x, x > 0)", {"object": DYN})
    values = {"object": [1, 2, 3]}
    assert program.evaluate(values) is True
    assert program.evaluate(values, deadline=time.monotonic() + 60) is True
    with pytest.raises(CelInterruptedError):
        program.evaluate(values, deadline=PAST)
