"""Compare a scenario with the same on the reference.

Two questions, kept apart. Does every allocation of the target keep the rules? That decides on
conformance. And did the scenario see the same on both targets? Admissible freedom may show in what
a scenario sees, so a difference is only reported, and only an outcome that the reference itself
does not reach makes the comparison inconclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.compare.demands import unrecorded
from conformance.compare.judging import judge, judge_undecided
from conformance.compare.observations import compare_observations, observed
from conformance.compare.witness import REFERENCE, Witness
from conformance.engine.events import Outcome, ScenarioFinished
from conformance.engine.verdicts import Difference, Judgement, ScenarioCompared
from conformance.errors import ConformanceError
from conformance.text import cut


class Comparer:
    """Judges each scenario of a target as it ends (``engine.scenario_run.Setup.compare``).

    Args:
        reference_events: how the same scenarios ended on the reference, run before; may lack some.
        witness: who judges.
    """

    def __init__(
        self, reference_events: Sequence[ScenarioFinished], witness: Witness = REFERENCE
    ) -> None:
        self._reference: Mapping[str, ScenarioFinished] = {
            event.scenario.id: event for event in reference_events
        }
        self._witness = witness

    def __call__(self, finished: ScenarioFinished) -> ScenarioCompared:
        """What the comparison says of a scenario that ended on the target."""
        reference = self._reference.get(finished.scenario.id)
        return compare_scenario(finished, reference, self._witness)


def compare_scenario(
    target: ScenarioFinished,
    reference: ScenarioFinished | None = None,
    witness: Witness = REFERENCE,
) -> ScenarioCompared:
    """Judge every decision of a scenario, and compare its observations with the reference's.

    Args:
        target: how it ended on the target.
        reference: how it ended on the reference target, None where that is not known.
        witness: who judges.
    """
    judgements: list[Judgement] = []
    problems: list[str] = []
    for number, decision in enumerate(target.decisions):
        try:
            judgements.append(judge(decision, witness))
        except ConformanceError as error:
            problems.append(f"decision {number}: {error}")
    for number, snapshot in enumerate(target.undecided):
        try:
            missed = judge_undecided(snapshot, witness)
        except ConformanceError as error:
            problems.append(f"undecided {number}: {error}")
        else:
            if missed is not None:
                judgements.append(missed)
    try:
        problems.extend(unrecorded(target))  # what was not recorded is not judged
    except ConformanceError as error:
        problems.append(f"what it must have recorded is not known: {error}")
    differences: tuple[Difference, ...] = ()
    if reference is not None:
        differences = compare_observations(target, reference)
        if observed(target) and reference.outcome in (Outcome.FAILED, Outcome.ERROR):
            problems.append(f"the reference itself {_ended(reference)}")
    return ScenarioCompared(
        scenario=target.scenario.id,
        judgements=tuple(judgements),
        differences=differences,
        problems=tuple(problems),
    )


def _ended(event: ScenarioFinished) -> str:
    verb = "fails" if event.outcome is Outcome.FAILED else "breaks"
    return f"{verb} ({cut(event.message.partition(chr(10))[0], 200)})" if event.message else verb
