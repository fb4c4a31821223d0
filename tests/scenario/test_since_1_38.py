"""Scenarios of what 1.38 does otherwise: its reference passes them, that of 1.37 fails them.

They are not shipped before there is a cluster of 1.38 to run them on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.results.events.scenario import Outcome
from conformance.scenario.loader import LoadedScenario, load_scenarios
from tests.scenario.kill_matrix import outcomes
from tests.scenario.test_gates import finished

FOLDER = Path(__file__).with_name("since_1_38")


def loaded() -> list[LoadedScenario]:
    return list(load_scenarios([FOLDER]))


def for_any_minor(one: LoadedScenario) -> LoadedScenario:
    """The scenario as it would be if it asked for no version."""
    spec = one.scenario.spec
    anywhere = spec.model_copy(
        update={"requires": spec.requires.model_copy(update={"kubernetes": "", "scheduler": ""})}
    )
    return replace(one, scenario=one.scenario.model_copy(update={"spec": anywhere}))


def test_the_reference_of_1_38_passes_them() -> None:
    assert set(outcomes(loaded()).values()) == {Outcome.PASSED}


def test_the_reference_of_1_37_fails_each() -> None:
    came = finished("1.37", [for_any_minor(one) for one in loaded()], on=True)
    assert {item.outcome for item in came.values()} == {Outcome.FAILED}, came
