"""Every verb that a scenario may use is carried out."""

from __future__ import annotations

from conformance.engine.run.verbs import VERBS
from conformance.scenario.changes import MODIFIERS
from conformance.scenario.steps import Step


def test_every_field_of_a_step_that_is_a_verb_has_a_class() -> None:
    assert set(VERBS) == set(Step.model_fields) - MODIFIERS
