from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from conformance.compare.compare_scenarios import compare_scenario, compare_with
from conformance.compare.conclude import conclude_run, explain_uncertified
from conformance.compare.witness import Answer
from conformance.results.events.comparison import ScenarioCompared, Verdict
from conformance.results.events.result import RunCollector, RunResult, count_verdicts
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from kube.base.errors import ExitCode
from tests.compare.cluster import Scripted, allocation, claim, decision, snapshot
from tests.report.builders import finished, planned, play, step, stream

DECISION = decision([claim()], [allocation("gpu-0")])
IDENTICAL = Scripted(Answer((allocation("gpu-0"),)))
ADMISSIBLE = Scripted(Answer((allocation("gpu-1"),)))
INADMISSIBLE = Scripted(Answer((allocation("gpu-1"),)), ["selector: gpu-0 does not match"])


def decided(name: str = "core/one", decisions: int = 1) -> ScenarioFinished:
    return finished(name, decisions=(DECISION,) * decisions)


def test_every_decision_gets_a_verdict_and_the_worst_stands_for_the_scenario() -> None:
    event = finished(decisions=(DECISION, DECISION), undecided=(snapshot(claims=(claim(),)),))
    compared = compare_scenario(event, None, IDENTICAL)
    assert count_verdicts([compared]) == {
        Verdict.IDENTICAL: 2,
        Verdict.ADMISSIBLE: 0,
        Verdict.OVERLAPPING: 0,
        Verdict.MISSED: 1,
        Verdict.INADMISSIBLE: 0,
        Verdict.IMPOSSIBLE: 0,
    }
    assert compared.verdict is Verdict.MISSED
    assert not compared.conformant


@pytest.mark.parametrize(
    ("witness", "conformant"), [(IDENTICAL, True), (ADMISSIBLE, True), (INADMISSIBLE, False)]
)
def test_identical_and_admissible_are_conformant(witness: Scripted, conformant: bool) -> None:
    assert compare_scenario(decided(), None, witness).conformant is conformant


def test_a_scenario_without_decisions_has_no_verdict() -> None:
    compared = compare_scenario(finished(), finished(), IDENTICAL)
    assert compared.verdict is None
    assert compared.conformant


def test_observations_are_compared_with_the_reference() -> None:
    target = finished(steps=(step("core/one", observed=({"a": 1},)),))
    reference = finished(steps=(step("core/one", observed=({"a": 2},)),))
    compared = compare_scenario(target, reference, IDENTICAL)
    assert compared.conformant  # freedom may show in what is seen; it is told, not judged
    assert compared.notes == ("differs: step 0: $[0].a is 1, on the reference 2",)


def test_a_reference_that_fails_makes_the_comparison_inconclusive() -> None:
    reference = finished(outcome=Outcome.FAILED, message="no pod\nmore")
    compared = compare_scenario(finished(), reference, IDENTICAL)
    assert compared.problems == ("the reference itself fails (no pod)",)
    assert code([planned()], [finished()], [compared]) is ExitCode.INCONCLUSIVE


def test_a_decision_that_cannot_be_judged_is_a_problem_and_no_crash() -> None:
    event = finished(decisions=({"node": "a"}, DECISION), undecided=({"kind": "x"},))
    compared = compare_scenario(event)
    assert len(compared.problems) >= 2
    assert compared.problems[0].startswith("decision 0: $.")
    assert code([event.scenario], [event], [compared]) is ExitCode.INCONCLUSIVE


def test_a_comparer_compares_each_scenario_with_the_same_on_the_reference() -> None:
    compare = compare_with([finished("core/one", Outcome.ERROR, "boom")], INADMISSIBLE)
    assert compare(decided()).notes == (
        "inadmissible: pod pod0: selector: gpu-0 does not match",
        "not judged: the reference itself breaks (boom)",
        "differs: outcome: $ is passed, on the reference error",
    )
    assert compare(decided("core/two")).problems == ()


def run(
    scenarios: Sequence[PlannedScenario],
    events: Sequence[ScenarioFinished],
    compared: Sequence[ScenarioCompared] | None = None,
    **changes: Any,
) -> RunResult:
    collector = RunCollector()
    play(collector, stream(scenarios, events, compared=compared, **changes))
    return collector.result()


def code(*given: Any, **changes: Any) -> ExitCode:
    return conclude_run(run(*given, **changes)).code


CORE, EXTENDED = planned("core/one"), planned("extended/two")
PASSED, PASSED_TOO = finished(CORE), finished(EXTENDED)


@pytest.mark.parametrize(
    ("events", "compared", "expected"),
    [
        pytest.param([PASSED, PASSED_TOO], None, ExitCode.CONFORMANT, id="all passed"),
        pytest.param(
            [PASSED, finished(EXTENDED, Outcome.SKIPPED)],
            None,
            ExitCode.CONFORMANT,
            id="an extended skip is allowed",
        ),
        pytest.param(
            [finished(CORE, Outcome.SKIPPED), PASSED_TOO],
            None,
            ExitCode.PARTIAL,
            id="a core skip is partial",
        ),
        pytest.param([PASSED], None, ExitCode.INCONCLUSIVE, id="lost"),
        pytest.param([], None, ExitCode.INCONCLUSIVE, id="all lost"),
        pytest.param(
            [PASSED, finished(EXTENDED, Outcome.ERROR)], None, ExitCode.INCONCLUSIVE, id="error"
        ),
        pytest.param(
            [PASSED, finished(EXTENDED, Outcome.FAILED)], None, ExitCode.NOT_CONFORMANT, id="failed"
        ),
        pytest.param(
            [finished(CORE, Outcome.FAILED)],
            None,
            ExitCode.NOT_CONFORMANT,
            id="a failure stands though something was lost",
        ),
        pytest.param(
            [finished(CORE, Outcome.ERROR), finished(EXTENDED, Outcome.LOST)],
            None,
            ExitCode.INCONCLUSIVE,
            id="reported as lost",
        ),
        pytest.param(
            [finished(CORE, cleanup=Outcome.FAILED), PASSED_TOO],
            None,
            ExitCode.NOT_CONFORMANT,
            id="a failed cleanup",
        ),
        pytest.param(
            [PASSED, PASSED_TOO], ADMISSIBLE, ExitCode.CONFORMANT, id="passed and admissible"
        ),
        pytest.param(
            [PASSED, PASSED_TOO],
            INADMISSIBLE,
            ExitCode.NOT_CONFORMANT,
            id="passed and inadmissible",
        ),
    ],
)
def test_the_exit_code_says_what_a_run_came_to(
    events: list[ScenarioFinished], compared: Scripted | None, expected: ExitCode
) -> None:
    judged = [compare_scenario(decided(), None, compared)] if compared else None
    assert code([CORE, EXTENDED], events, judged) is expected


def test_what_was_broken_off_or_left_behind_is_inconclusive() -> None:
    for end in ({"interrupted": True}, {"left": ("Namespace x",)}):
        assert code([CORE], [PASSED], end=end) is ExitCode.INCONCLUSIVE


def test_a_run_in_which_nothing_passed_is_never_conformant() -> None:
    assert code([], []) is ExitCode.INCONCLUSIVE
    skipped = finished(EXTENDED, Outcome.SKIPPED)
    assert code([EXTENDED], [skipped]) is ExitCode.INCONCLUSIVE


def test_only_a_compared_run_on_a_cluster_can_certify_something() -> None:
    real = {"target": "cluster"}
    assert explain_uncertified(run([CORE], [PASSED], [], start=real)) == ()
    for start, compared, reason in (
        ({**real, "target": "reference"}, [], "on the suite's own reference"),
        (real, None, "no allocation was judged"),
    ):
        [found] = explain_uncertified(run([CORE], [PASSED], compared, start=start))
        assert reason in found
