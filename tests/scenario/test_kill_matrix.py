"""A suite that passes everything is worthless: each deliberate defect must fail its scenarios.

Which these are is in kill_matrix.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.engine.events import Outcome
from conformance.engine.scenario_run import Setup
from conformance.engine.suite import run_suite
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.profile import load_profile
from conformance.targets.opening import Opened
from tests.mutants import mutant
from tests.mutants.faults import Fault
from tests.scenario.kill_matrix import ABOUT, GATES, page
from tests.scenario.shipped import ROOT, shipped

PAGE = Path(__file__).resolve().parents[2] / "docs/kill-matrix.md"


SAMPLE = 6
"""Beside those about it, a defect is shown to every sixth scenario, each time to others."""


def outcomes(scenarios: Sequence[LoadedScenario], *faults: Fault) -> dict[str, Outcome]:
    """Scenario -> what became of it on a reference with these faults."""
    profile = load_profile("gpu.nvidia.com", ROOT / "drivers")
    with mutant(*faults, feature_gates=GATES) as target:
        setup = Setup("kill", Opened(target, target.capabilities(), profile, "image"))
        result = run_suite(scenarios, setup, ())
    return {item.scenario.id: item.outcome for item in result.finished}


def others(found: dict[str, Outcome], *expected: Outcome) -> dict[str, str]:
    return {name: str(outcome) for name, outcome in found.items() if outcome not in expected}


def test_the_reference_without_a_defect_passes_every_scenario() -> None:
    assert others(outcomes(shipped()), Outcome.PASSED) == {}


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.title)
def test_a_defect_fails_the_scenarios_about_it_and_is_never_taken_for_one_of_the_suite(
    fault: Fault,
) -> None:
    start = list(Fault).index(fault) % SAMPLE
    scenarios = [
        loaded
        for index, loaded in enumerate(shipped())
        if loaded.id in ABOUT[fault] or index % SAMPLE == start
    ]
    found = outcomes(scenarios, fault)
    assert others({name: found[name] for name in ABOUT[fault]}, Outcome.FAILED) == {}
    assert others(found, Outcome.PASSED, Outcome.FAILED) == {}


def test_every_defect_fails_a_scenario_that_is_about_it() -> None:
    assert set(ABOUT) == set(Fault)
    assert all(ABOUT.values())


def test_every_scenario_is_about_a_defect_that_it_catches() -> None:
    assert set().union(*ABOUT.values()) == {loaded.id for loaded in shipped()}


def test_the_page_about_it_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m tests.scenario.kill_matrix > docs/kill-matrix.md"
    )
