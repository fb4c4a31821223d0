"""Every verb that a scenario may use is described and carried out."""

from __future__ import annotations

from conformance.engine.run import verbs
from conformance.scenario import steps
from conformance.scenario.changes import MODIFIERS


def test_every_field_of_a_step_that_is_a_verb_is_described_and_carried_out_by_a_class() -> None:
    fields = set(steps.Step.model_fields) - MODIFIERS
    assert (set(steps.VERBS), set(verbs.VERBS)) == (fields, fields)
