"""Churn notices what is broken, and shows the shortest history."""

from __future__ import annotations

from functools import cache

import pytest

from conformance.engine.run import churn_rounds as rounds
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.results.knownissues import with_known_issues
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from tests.mutants import mutant
from tests.report.builders import all_of
from tests.scenario.shipped import shipped


@cache
def scenario() -> LoadedScenario:
    [found] = [each for each in shipped() if each.id == "core/churn-keeps-invariants"]
    return found


def run(*faults: str, **options: float) -> ScenarioFinished:
    with mutant(*faults) as target:
        opened = Opened.of(target, None, "image", TargetOptions(**options))  # type: ignore[arg-type]
        [finished] = run_suite([scenario()], Setup("churn", opened), ()).finished
    return finished


def test_a_sound_reference_keeps_every_invariant() -> None:
    finished = run()
    assert finished.outcome is Outcome.PASSED, finished.message
    assert finished.steps[-1].observed == ({"seed": 17, "rounds": 1},)


def test_a_scheduler_that_is_behind_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    not_yet, allocated = iter([False, False]), rounds._allocated
    monkeypatch.setattr(rounds, "_allocated", lambda versions: next(not_yet, allocated(versions)))
    finished = run()
    assert finished.outcome is Outcome.PASSED, finished.message


def test_long_churn_is_many_rounds_with_seeds_of_their_own() -> None:
    finished = run(churn_time=9.0, churn_seed=41)
    assert finished.steps[-1].observed == ({"seed": 41, "rounds": 3, "operations": 270},)


def test_long_churn_goes_on_when_something_is_broken_and_tells_all() -> None:
    finished = run("double-allocation", churn_time=6.0, churn_seed=17)
    assert finished.outcome is Outcome.FAILED
    assert "in 2 rounds of 180 operations: overlap with seed 17, overlap with seed 18" in (
        finished.message
    )


def test_an_overlap_is_the_known_issue_of_a_version_that_has_it() -> None:
    overlap, other = run("double-allocation"), run("releases-too-early")
    found = {
        version: with_known_issues(overlap, "cluster", all_of(version)).outcome
        for version in ("1.36.3", "1.37.1")
    }
    assert found == {"1.36.3": Outcome.FAILED, "1.37.1": Outcome.KNOWN}
    assert with_known_issues(other, "cluster", all_of("1.37.1")) == other


@pytest.mark.parametrize(
    ("fault", "rule", "lines"),
    [
        ("double-allocation", "overlap", 3),
        ("releases-too-early", "in-use", 3),
        ("finished-pods-keep-claims", "reserved", 3),
        ("forgets-reservation", "unreserved", 2),
        ("shares-template-claim", "foreign", 3),
        ("claims-outlive-pods", "left", 1),
    ],
)
def test_a_broken_rule_is_reported_with_its_seed_and_the_shortest_history(
    fault: str, rule: str, lines: int
) -> None:
    finished = run(fault)
    assert finished.outcome is Outcome.FAILED
    assert f"found {rule} at resourceVersion" in finished.message
    assert "under churn with seed 17" in finished.message
    assert "--churn-seed 17" in finished.message
    history = finished.message.partition("history:\n")[2].partition("\nin 1 rounds")[0]
    assert len(history.splitlines()) == lines
