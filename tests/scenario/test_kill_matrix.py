"""A suite that passes everything is worthless: each deliberate defect must be noticed.

By which scenarios is in kills.yaml, which kill_matrix.py writes.
"""

from __future__ import annotations

import pytest

from conformance.engine.events import Outcome
from tests.mutants import MUTATIONS
from tests.mutants.faults import Fault
from tests.scenario.kill_matrix import (
    COMMAND,
    PAGE,
    failing,
    outcomes,
    own,
    page,
    read_kills,
    read_not_alone,
)
from tests.scenario.shipped import on_reference

SAMPLE = 15
"""Beside those that notice it, a defect is shown to every so many-th scenario."""

STALE = f"run: {COMMAND}"


def test_the_reference_without_a_defect_passes_every_scenario() -> None:
    found = outcomes(on_reference())
    assert {name: o for name, o in found.items() if o is not Outcome.PASSED} == {}


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.title)
def test_a_defect_is_noticed_by_the_scenarios_that_the_page_names(fault: Fault) -> None:
    named = set(read_kills()[fault.title])
    start = list(Fault).index(fault) % SAMPLE
    met = [
        loaded
        for index, loaded in enumerate(on_reference())
        if loaded.id in named or index % SAMPLE == start
    ]
    found = failing(met, fault)
    assert named - found == set(), STALE
    # Alone, as what other scenarios had to leave behind may be in the way.
    more = [loaded for loaded in met if loaded.id in found - named]
    assert [loaded.id for loaded in more if failing([loaded], fault)] == [], STALE


def test_every_defect_has_a_mutation_and_is_noticed() -> None:
    kills = read_kills()
    assert set(MUTATIONS) == set(Fault)
    assert set(kills) == {fault.title for fault in Fault}, STALE
    assert all(kills.values())


def test_every_scenario_alone_notices_a_defect_or_says_why_not() -> None:
    alone, reasons = set(own(read_kills())), set(read_not_alone())
    assert alone | reasons == {loaded.id for loaded in on_reference()}, STALE
    assert alone & reasons == set(), "the reason is not true any more"


def test_the_page_about_it_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_kills(), read_not_alone()), STALE
