"""A reporter that fails: the run ends early, cleans up, and says so once."""

from __future__ import annotations

import errno

import pytest

from conformance.engine.suite import run_suite
from conformance.results.events.dispatch import Event, ReportError
from conformance.results.events.run import RunFinished, RunStarted, RunStopping
from conformance.results.events.scenario import Outcome, ScenarioFinished, StepStarted
from kube.base.errors import UsageError
from tests.engine.miniature import Miniature, Recorder, pod, scenario, setup

STEPS = ({"apply": [pod("p")]}, {"expect": [{"pod": "p", "scheduled": True}]})
SCENARIOS = [scenario(*STEPS, name=f"s{number}") for number in range(3)]


class Failing:
    """Raises at one kind of event, and counts what it is told."""

    def __init__(self, at: type[Event], error: BaseException) -> None:
        self.at = at
        self.error = error
        self.told = 0

    def __str__(self) -> str:
        return "the record"

    def handle(self, event: Event) -> None:
        self.told += 1
        if isinstance(event, self.at):
            raise self.error


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [FULL, SystemExit(1), ValueError("a bug")])
@pytest.mark.parametrize(("at", "lost"), [(StepStarted, 3), (ScenarioFinished, 2)])
def test_the_run_ends_early_and_cleans_up(at: type[Event], lost: int, error: BaseException) -> None:
    target, recorder, failing = Miniature(), Recorder(), Failing(at, error)
    with pytest.raises(ReportError) as raised:
        run_suite(SCENARIOS, setup(target), [failing, recorder])
    assert target.objects == {}
    assert str(raised.value).startswith("the record failed: ")
    assert f"{lost} of 3 scenarios lost, and what the run made was removed" in str(raised.value)
    assert raised.value.exit_code == 3


def test_it_is_told_nothing_more_and_the_others_hear_everything() -> None:
    recorder, failing = Recorder(), Failing(StepStarted, FULL)
    with pytest.raises(ReportError):
        run_suite(SCENARIOS, setup(Miniature()), [failing, recorder])
    assert failing.told == 3  # the header, the scenario, the step
    assert RunStopping("the record failed: No space left on device") in recorder.events
    ended = [event.outcome for event in recorder.events if isinstance(event, ScenarioFinished)]
    assert ended.count(Outcome.LOST) >= 2
    assert len(ended) == 3
    assert isinstance(recorder.events[-1], RunFinished)
    assert recorder.events[-1].interrupted


def test_every_reporter_that_fails_is_named() -> None:
    failing = [Failing(StepStarted, FULL), Failing(RunStopping, ValueError("as well"))]
    with pytest.raises(ReportError) as raised:
        run_suite(SCENARIOS, setup(Miniature()), failing)
    assert "No space left on device; the record failed: ValueError: as well" in str(raised.value)


def test_what_could_not_be_removed_is_named_because_the_report_may_not_say_it() -> None:
    stuck = scenario({"apply": [pod("p", finalizers=["example.com/never"])]}, STEPS[1])
    target = Miniature()
    with pytest.raises(ReportError, match="left behind: Pod p; run `dra-conformance cleanup`"):
        run_suite([stuck], setup(target), [Failing(StepStarted, FULL)])


def test_a_place_that_cannot_be_written_is_told_before_anything_is_made() -> None:
    target = Miniature()
    with pytest.raises(UsageError, match="another place"):
        run_suite(SCENARIOS, setup(target), [Failing(RunStarted, UsageError("another place"))])
    assert target.log == []


def test_a_bug_around_one_scenario_is_its_error_and_the_others_run() -> None:
    target, recorder = Miniature(), Recorder()
    real = target.scope

    def broken(namespace: str) -> object:
        if target.log.count("close") == 1:
            target.log.append("broken")
            raise RuntimeError("no scope")
        return real(namespace)

    target.scope = broken  # type: ignore[method-assign, assignment]
    result = run_suite(SCENARIOS, setup(target), [recorder])
    outcomes = [item.outcome for item in result.finished]
    assert outcomes == [Outcome.PASSED, Outcome.ERROR, Outcome.ERROR]
    assert "the suite failed: RuntimeError: no scope" in result.finished[1].message
    assert target.objects == {}
