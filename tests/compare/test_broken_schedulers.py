"""The judge is judged: a scheduler with a known defect must not get away with it.

The scenarios' own expectations catch these defects as well. Here only the verdicts count, which
know nothing of a scenario's expectations: they see what was decided, and from what.
"""

from __future__ import annotations

from functools import cache

import pytest

from conformance.compare.compare import against
from conformance.engine.events.comparison import ScenarioCompared, Verdict
from conformance.engine.events.result import count_verdicts
from conformance.engine.events.scenario import ScenarioFinished
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from tests.mutants import mutant
from tests.mutants.faults import Fault
from tests.scenario.kill_matrix import GATES, read_kills
from tests.scenario.sampling import SAMPLE, sample
from tests.scenario.shipped import shipped


@cache
def scenarios() -> tuple[LoadedScenario, ...]:
    """The shipped scenarios of the allocation tier."""
    return tuple(item for item in shipped() if item.scenario.spec.tier == "allocation")


def met(*faults: Fault) -> list[LoadedScenario]:
    """Those that show the defects, and some others."""
    shows = {name for fault in faults for name in read_kills()[fault.title]}
    others = {item.id for item in sample(scenarios(), 3, str(faults))}
    return [item for item in scenarios() if item.id in shows | others]


def ran(*faults: Fault) -> tuple[ScenarioFinished, ...]:
    with mutant(*faults, feature_gates=GATES) as target:
        recorded = TargetOptions(record=True)
        opened = Opened(target, target.capabilities(), None, "probe", recorded)
        setup = Setup("judged", opened)
        return run_suite(met(*faults) if faults else scenarios(), setup, ()).finished


@cache
def good() -> tuple[ScenarioFinished, ...]:
    return ran()


def judged(*faults: Fault) -> list[ScenarioCompared]:
    return [against(good())(event) for event in ran(*faults)]


def test_the_reference_itself_is_identical_everywhere() -> None:
    compared = [against(good())(event) for event in good()]
    assert count_verdicts(compared)[Verdict.IDENTICAL] > 10
    assert all(item.conformant for item in compared)
    assert [item for item in compared if item.differences or item.problems] == []


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        (Fault.DOUBLE_ALLOCATION, "in-use"),
        (Fault.IGNORE_SELECTORS, "selector"),
        (Fault.IGNORE_MATCH_ATTRIBUTE, "constraint"),
        (Fault.IGNORES_CONSUMED_CAPACITY, "capacity"),
        (Fault.IGNORES_COUNT, "count"),
        (Fault.IGNORES_COUNTERS, "counter"),
        (Fault.IGNORES_DEVICE_TAINTS, "taint"),
        (Fault.IGNORES_REQUEST_POLICY, "capacity"),
        (Fault.IGNORES_TAINT_RULES, "taint"),
        (Fault.ALL_TAKES_ONE, "all"),
        (Fault.ALL_MAY_BE_NONE, "all"),
        (Fault.ANY_NODE, "device"),
        (Fault.CLAIM_CONFIG_FIRST, "config"),
        (Fault.LOSES_CONFIG, "config"),
        (Fault.NO_NODE_SELECTOR, "node-selector"),
        (Fault.ONE_DEVICE_FOR_ALL_REQUESTS, "in-use"),
    ],
    ids=lambda value: value.title if isinstance(value, Fault) else value,
)
def test_a_defect_of_the_scheduler_is_found_and_its_rule_named(fault: Fault, rule: str) -> None:
    compared = judged(fault)
    # What an overlap says already is told there: the judge has no more to say of it.
    verdicts = count_verdicts(compared)
    assert not all(item.conformant for item in compared) or verdicts[Verdict.OVERLAPPING]
    violations = [
        text
        for scenario in compared
        for judgement in scenario.judgements
        for text in judgement.violations
    ]
    assert any(text.startswith(f"{rule}:") for text in violations), (violations, SAMPLE)


def test_a_defect_beside_the_allocation_shows_in_what_was_observed() -> None:
    assert any(item.differences for item in judged(Fault.NO_FINALIZER, Fault.NEVER_RELEASE))
