"""The judge is judged: a scheduler with a known defect must not get away with it.

The scenarios' own expectations catch these defects as well. Here only the verdicts count, which
know nothing of a scenario's expectations: they see what was decided, and from what.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import pytest

from conformance.compare.compare_scenarios import compare_with
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.comparison import ScenarioCompared, Verdict
from conformance.results.events.result import count_verdicts
from conformance.results.events.scenario import ScenarioFinished
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from tests.mutants import mutant
from tests.scenario.kill_matrix import GATES, read_kills
from tests.scenario.shipped import shipped

SHOWN: Final = 8
"""Of a defect that dozens of scenarios show, the first so many: each must do for itself."""


@cache
def scenarios() -> tuple[LoadedScenario, ...]:
    """The shipped scenarios of the allocation tier."""
    return tuple(item for item in shipped() if item.scenario.spec.tier == "allocation")


def ran(items: Sequence[LoadedScenario], *faults: str) -> tuple[ScenarioFinished, ...]:
    with mutant(*faults, feature_gates=GATES) as target:
        recorded = TargetOptions(record=True)
        opened = Opened(target, target.capabilities(), None, "probe", recorded)
        setup = Setup("judged", opened)
        return run_suite(items, setup, ()).finished


def judged(items: Sequence[LoadedScenario], *faults: str) -> list[ScenarioCompared]:
    right = compare_with(ran(items))
    return [right(event) for event in ran(items, *faults)]


def showing(*faults: str) -> list[LoadedScenario]:
    shows = {name for fault in faults for name in read_kills()[fault]}
    return [item for item in scenarios() if item.id in shows][:SHOWN]


def test_the_reference_itself_is_identical_everywhere() -> None:
    good = ran(scenarios())
    compared = [compare_with(good)(event) for event in good]
    assert count_verdicts(compared)[Verdict.IDENTICAL] > 10
    assert all(item.conformant for item in compared)
    assert [item for item in compared if item.differences or item.problems] == []


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("double-allocation", "in-use"),
        ("ignore-selectors", "selector"),
        ("ignore-match-attribute", "constraint"),
        ("ignores-consumed-capacity", "capacity"),
        ("ignores-count", "count"),
        ("ignores-counters", "counter"),
        ("ignores-device-taints", "taint"),
        ("ignores-request-policy", "capacity"),
        ("ignores-taint-rules", "taint"),
        ("all-takes-one", "all"),
        ("all-may-be-none", "all"),
        ("any-node", "device"),
        ("claim-config-first", "config"),
        ("loses-config", "config"),
        ("no-node-selector", "node-selector"),
        ("one-device-for-all-requests", "in-use"),
    ],
)
def test_a_defect_of_the_scheduler_is_found_and_its_rule_named(fault: str, rule: str) -> None:
    compared = judged(showing(fault), fault)
    # What an overlap says already is told there: the judge has no more to say of it.
    verdicts = count_verdicts(compared)
    assert not all(item.conformant for item in compared) or verdicts[Verdict.OVERLAPPING]
    violations = [
        text
        for scenario in compared
        for judgement in scenario.judgements
        for text in judgement.violations
    ]
    assert any(text.startswith(f"{rule}:") for text in violations), violations


def test_a_defect_beside_the_allocation_shows_in_what_was_observed() -> None:
    faults = ("no-finalizer", "never-release")
    assert any(item.differences for item in judged(showing(*faults), *faults))
