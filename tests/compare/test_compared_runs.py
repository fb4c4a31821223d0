from __future__ import annotations

import json

import pytest

from conformance.compare.compare import Comparer, Comparison, compare_runs
from conformance.compare.conclude import exit_code
from conformance.compare.judging import Answer, Verdict
from conformance.engine.events import Outcome, ScenarioFinished
from conformance.errors import ExitCode
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
    comparison = compare_runs([event], [], IDENTICAL)
    assert comparison.scenarios[0].counts == {
        Verdict.IDENTICAL: 2,
        Verdict.ADMISSIBLE: 0,
        Verdict.MISSED: 1,
        Verdict.INADMISSIBLE: 0,
        Verdict.IMPOSSIBLE: 0,
    }
    assert comparison.verdicts == {"core/one": "missed"}
    assert not comparison.conformant


@pytest.mark.parametrize(
    ("witness", "conformant"), [(IDENTICAL, True), (ADMISSIBLE, True), (INADMISSIBLE, False)]
)
def test_identical_and_admissible_are_conformant(witness: Scripted, conformant: bool) -> None:
    assert compare_runs([decided()], [], witness).conformant is conformant


def test_scenarios_without_decisions_have_no_verdict() -> None:
    comparison = compare_runs([finished()], [finished()], IDENTICAL)
    assert comparison.verdicts == {}
    assert comparison.conformant


def test_scenarios_are_sorted_and_json_is_the_same_each_time() -> None:
    events = [decided("core/b"), decided("core/a")]
    one, two = compare_runs(events, [], ADMISSIBLE), compare_runs(events[::-1], [], ADMISSIBLE)
    assert json.dumps(one.to_json()) == json.dumps(two.to_json())
    assert [item["id"] for item in one.to_json()["scenarios"]] == ["core/a", "core/b"]


def test_observations_are_compared_with_the_reference() -> None:
    target = finished(steps=(step("core/one", observed=({"a": 1},)),))
    reference = finished(steps=(step("core/one", observed=({"a": 2},)),))
    comparison = compare_runs([target], [reference], IDENTICAL)
    assert comparison.differences == 1
    assert comparison.conformant  # freedom may show in what is seen; it is told, not judged
    assert comparison.scenarios[0].notes == ("differs: step 0: $[0].a is 1, on the reference 2",)


def test_a_reference_that_fails_makes_the_comparison_inconclusive() -> None:
    reference = finished(outcome=Outcome.FAILED, message="no pod\nmore")
    comparison = compare_runs([finished()], [reference], IDENTICAL)
    assert comparison.problems == ("core/one: the reference itself fails (no pod)",)
    assert exit_code([planned()], [finished()], comparison) is ExitCode.INCONCLUSIVE


def test_a_decision_that_cannot_be_judged_is_a_problem_and_no_crash() -> None:
    event = finished(decisions=({"node": "a"}, DECISION), undecided=({"kind": "x"},))
    comparison = compare_runs([event], [])
    assert len(comparison.problems) >= 2
    assert "core/one: decision 0: $." in comparison.problems[0]
    assert exit_code([event.scenario], [event], comparison) is ExitCode.INCONCLUSIVE


def test_the_comparer_knows_the_verdict_when_other_reporters_hear_of_the_scenario() -> None:
    comparer = Comparer([finished("core/one")], INADMISSIBLE)
    seen: list[dict[str, str]] = []

    class Other:
        def handle(self, event: object) -> None:
            if isinstance(event, ScenarioFinished):
                seen.append(dict(comparer.verdicts))

    events = stream([planned()], [decided()])
    other = Other()
    for event in events:
        comparer.handle(event)
        play(other, [event])
    assert seen == [{"core/one": "inadmissible"}]
    assert comparer.notes("core/one") == ("inadmissible: pod pod0: selector: gpu-0 does not match",)
    assert comparer.notes("core/none") == ()
    assert comparer.comparison() == compare_runs([decided()], [finished()], INADMISSIBLE)


def comparison(witness: Scripted) -> Comparison:
    return compare_runs([decided()], [], witness)


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
            [PASSED, finished(EXTENDED, Outcome.FAILED)],
            None,
            ExitCode.NOT_CONFORMANT,
            id="failed",
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
    judged = comparison(compared) if compared else None
    assert exit_code([CORE, EXTENDED], events, judged) is expected


def test_what_was_broken_off_or_left_behind_is_inconclusive() -> None:
    assert exit_code([CORE], [PASSED], interrupted=True) is ExitCode.INCONCLUSIVE
    assert exit_code([CORE], [PASSED], left=["Namespace x"]) is ExitCode.INCONCLUSIVE


def test_a_run_in_which_nothing_passed_is_never_conformant() -> None:
    assert exit_code([], []) is ExitCode.INCONCLUSIVE
    skipped = finished(EXTENDED, Outcome.SKIPPED)
    assert exit_code([EXTENDED], [skipped]) is ExitCode.INCONCLUSIVE
