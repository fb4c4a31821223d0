"""In no shape of a correct cluster does a scenario fail: it passes, or is skipped with a reason.

What fails here fails on somebody's cluster that is as it should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.dispatch import Event
from conformance.results.events.scenario import Outcome, ScenarioFinished, StepFinished
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.checks import check_options
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened, open_reference
from tests.scenario.sampling import SAMPLE, sample
from tests.scenario.shapes import ALWAYS, SHAPES
from tests.scenario.shipped import shipped


def not_right(finished: Iterable[ScenarioFinished]) -> dict[str, str]:
    """Scenario -> why it is wrong."""
    return {
        item.scenario.id: item.message or f"left behind: {', '.join(item.left)}"
        for item in finished
        if item.outcome not in {Outcome.PASSED, Outcome.SKIPPED}
        or item.left
        or (item.outcome is Outcome.SKIPPED and not item.message)
    }


@pytest.mark.parametrize("shape", ALWAYS)
def test_no_scenario_of_a_sample_fails_on_a_correct_cluster(shape: str) -> None:
    fails_nowhere(shape, sample(shipped(), 60, shape))


@pytest.mark.everything
@pytest.mark.parametrize("shape", SHAPES)
def test_no_scenario_fails_on_a_correct_cluster(shape: str) -> None:
    fails_nowhere(shape, shipped())


def fails_nowhere(shape: str, scenarios: Sequence[LoadedScenario]) -> None:
    check_options(SHAPES[shape])
    with open_reference(SHAPES[shape]) as opened:
        finished = run_suite(scenarios, Setup("t", opened), ()).finished
    assert not_right(finished) == {}, SAMPLE


class Beside:
    """Runs a scenario a second time while the first run has not cleaned up after it."""

    def __init__(self, loaded: LoadedScenario, opened: Opened) -> None:
        self.loaded = loaded
        self.opened = opened
        self.finished: list[ScenarioFinished] = []

    def handle(self, event: Event) -> None:
        last = len(self.loaded.scenario.spec.steps) - 1
        if isinstance(event, StepFinished) and event.index == last:
            now = replace(self.opened, capabilities=self.opened.target.capabilities())
            self.finished += run_suite([self.loaded], Setup("second", now), ()).finished


@pytest.mark.parametrize("among", [30, pytest.param(10_000, marks=pytest.mark.everything)])
def test_a_run_beside_another_does_not_fail_nor_does_the_other(among: int) -> None:
    finished: list[ScenarioFinished] = []
    with open_reference(TargetOptions(nodes=2)) as opened:
        for loaded in sample(shipped(), among, "beside another"):
            second = Beside(loaded, opened)
            finished += run_suite([loaded], Setup("first", opened), [second]).finished
            finished += second.finished
    assert not_right(finished) == {}, SAMPLE
