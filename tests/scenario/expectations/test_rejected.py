"""A refusal names the field that is asked for, or one below it."""

from __future__ import annotations

from typing import cast

import pytest

from conformance.scenario.expectations.base import Cluster, Refusal
from conformance.scenario.expectations.rejected import RejectedExpectation

WANTED = "spec.devices.requests[1]"


class Refusing:
    """A cluster that refuses whatever it gets."""

    def __init__(self, field: str) -> None:
        self._field = field

    def canonical(self, text: str) -> str:
        return text

    def refusal(self, _: object, account: str | None) -> Refusal:
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
