"""A suite that passes everything is worthless: each deliberate defect must be noticed.

By which scenarios is in kills.yaml, which kill_matrix.py writes. One of them runs with the defect
in `make test`, another one each day; `make everything` runs all of them.
"""

from __future__ import annotations

import pytest

from conformance.results.events.scenario import Outcome
from kubesim.world import World
from tests.mutants import DEFECTS
from tests.scenario.kill_matrix import COMMAND, failing, outcomes, own, read_kills, read_not_alone
from tests.scenario.sampling import SAMPLE, sample
from tests.scenario.shipped import on_reference

STALE = f"{SAMPLE}; if kills.yaml is out of date, run: {COMMAND}"


@pytest.mark.parametrize("fault", DEFECTS)
def test_a_defect_is_noticed_by_the_scenarios_that_the_page_names(fault: str) -> None:
    noticed_by(fault, {*sample(read_kills()[fault], 1, fault)})


def test_parts_may_take_turns_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = World._build_parts
    monkeypatch.setattr(World, "_build_parts", lambda world: rows(world)[::-1])
    found = outcomes(sample(on_reference(), 30, "reversed"))
    assert {name: o for name, o in found.items() if o is not Outcome.PASSED} == {}, SAMPLE


@pytest.mark.everything
@pytest.mark.parametrize("fault", DEFECTS)
def test_a_defect_is_noticed_by_all_the_scenarios_that_the_page_names(fault: str) -> None:
    noticed_by(fault, {*read_kills()[fault]})


def noticed_by(fault: str, named: set[str]) -> None:
    """These scenarios notice the defect."""
    met = [each for each in on_reference() if each.id in named]
    assert named - failing(met, fault) == set(), STALE


def test_every_defect_is_noticed() -> None:
    kills = read_kills()
    assert set(kills) == set(DEFECTS), STALE
    assert all(kills.values())


def test_every_scenario_alone_notices_a_defect_or_says_why_not() -> None:
    alone, reasons = set(own(read_kills())), set(read_not_alone())
    assert alone | reasons == {loaded.id for loaded in on_reference()}, STALE
    assert alone & reasons == set(), "the reason is not true any more"
