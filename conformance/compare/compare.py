"""Compare a whole run with the same scenarios on the reference.

Two questions, kept apart. Does every allocation of the target keep the rules? That decides on
conformance. And did each scenario see the same on both targets? Admissible freedom may show in what
a scenario sees, so that a difference is told, and only an outcome that the reference itself does
not reach makes the comparison inconclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.compare.demands import unrecorded
from conformance.compare.judging import Judgement, Verdict, Witness, judge, judge_undecided
from conformance.compare.observations import Difference, compare_observations, observed
from conformance.engine.events import Event, Outcome, ScenarioFinished
from conformance.errors import ConformanceError

MAX_NOTES = 5
"""Differences of one scenario that are told on the terminal; the result file has them all."""


@dataclass(frozen=True, slots=True)
class ScenarioComparison:
    """What the comparison says of one scenario.

    Attributes:
        id: the scenario's public id.
        level: ``core`` or ``extended``.
        outcome: on the target.
        reference_outcome: on the reference; None where it did not run there.
        judgements: of the target's decisions in order, then of what it left pending and should not
            have.
        differences: between what was observed on the two.
        problems: what could not be judged, and why; each makes the comparison inconclusive.
    """

    id: str
    level: str
    outcome: Outcome
    reference_outcome: Outcome | None
    judgements: tuple[Judgement, ...] = ()
    differences: tuple[Difference, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict, None where nothing was allocated."""
        verdicts = [item.verdict for item in self.judgements]
        return max(verdicts, key=lambda item: item.rank) if verdicts else None

    @property
    def counts(self) -> dict[Verdict, int]:
        """Verdict -> decisions, every verdict present."""
        return {v: sum(1 for item in self.judgements if item.verdict is v) for v in Verdict}

    @property
    def conformant(self) -> bool:
        """Whether every verdict is one that a conformant target may get."""
        return all(item.verdict.conformant for item in self.judgements)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person has to know: verdicts against a rule, what was not judged, differences."""
        lines = [
            f"{item.verdict}: {f'pod {item.pod}: ' if item.pod else ''}{item.reason}"
            for item in self.judgements
            if not item.verdict.conformant
        ]
        lines += [f"not judged: {problem}" for problem in self.problems]
        lines += [f"differs: {item}" for item in self.differences[:MAX_NOTES]]
        if self.differences[MAX_NOTES:]:
            lines.append(f"and {len(self.differences) - MAX_NOTES} more differences")
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; judgements that say "identical" are counted, not listed."""
        return {
            "id": self.id,
            "level": self.level,
            "verdict": None if self.verdict is None else str(self.verdict),
            "counts": {str(key): number for key, number in self.counts.items()},
            "outcome": str(self.outcome),
            "referenceOutcome": (
                None if self.reference_outcome is None else str(self.reference_outcome)
            ),
            "judgements": [
                item.to_json() for item in self.judgements if item.verdict is not Verdict.IDENTICAL
            ],
            "differences": [item.to_json() for item in self.differences],
            "problems": list(self.problems),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the comparison says of a run; scenarios are sorted by id."""

    scenarios: tuple[ScenarioComparison, ...]

    @property
    def counts(self) -> dict[Verdict, int]:
        """Verdict -> decisions in the whole run, every verdict present."""
        return {v: sum(item.counts[v] for item in self.scenarios) for v in Verdict}

    @property
    def differences(self) -> int:
        """How many differences were observed."""
        return sum(len(item.differences) for item in self.scenarios)

    @property
    def conformant(self) -> bool:
        """Whether every decision is identical or admissible."""
        return all(item.conformant for item in self.scenarios)

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be judged, with the scenario in front."""
        return tuple(
            f"{item.id}: {problem}" for item in self.scenarios for problem in item.problems
        )

    @property
    def verdicts(self) -> dict[str, str]:
        """Scenario id -> worst verdict, for tables; scenarios without any are left out."""
        return {item.id: str(item.verdict) for item in self.scenarios if item.verdict}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON for the result file; the same comparison gives the same JSON."""
        return {
            "conformant": self.conformant,
            "counts": {str(key): number for key, number in self.counts.items()},
            "differences": self.differences,
            "scenarios": [item.to_json() for item in self.scenarios],
        }


def compare_runs(
    target_events: Sequence[ScenarioFinished],
    reference_events: Sequence[ScenarioFinished],
    witness: Witness | None = None,
) -> Comparison:
    """Judge every decision of a run, and compare its observations with the reference's.

    Args:
        target_events: how the scenarios ended on the target.
        reference_events: how they ended on the reference target; may lack some.
        witness: who judges; None is the reference that the suite ships.
    """
    on_reference = {event.scenario.id: event for event in reference_events}
    compared = [
        compare_scenario(event, on_reference.get(event.scenario.id), witness)
        for event in target_events
    ]
    return Comparison(tuple(sorted(compared, key=lambda item: item.id)))


def compare_scenario(
    target: ScenarioFinished,
    reference: ScenarioFinished | None,
    witness: Witness | None = None,
) -> ScenarioComparison:
    """The same for one scenario."""
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
    return ScenarioComparison(
        id=target.scenario.id,
        level=target.scenario.level,
        outcome=target.outcome,
        reference_outcome=None if reference is None else reference.outcome,
        judgements=tuple(judgements),
        differences=differences,
        problems=tuple(problems),
    )


class Comparer:
    """A reporter that judges each scenario of the target as it ends.

    Put it before the other reporters: :attr:`verdicts` is then filled when they hear of a scenario.

    Args:
        reference_events: how the same scenarios ended on the reference, run before.
        witness: who judges; None is the reference that the suite ships.
    """

    def __init__(
        self, reference_events: Sequence[ScenarioFinished], witness: Witness | None = None
    ) -> None:
        self._reference: Mapping[str, ScenarioFinished] = {
            event.scenario.id: event for event in reference_events
        }
        self._witness = witness
        self._compared: dict[str, ScenarioComparison] = {}
        self.verdicts: dict[str, str] = {}

    def handle(self, event: Event) -> None:
        """Judge a scenario that ended."""
        if not isinstance(event, ScenarioFinished):
            return
        name = event.scenario.id
        compared = compare_scenario(event, self._reference.get(name), self._witness)
        self._compared[name] = compared
        if compared.verdict is not None:
            self.verdicts[name] = str(compared.verdict)

    def notes(self, scenario_id: str) -> tuple[str, ...]:
        """What a person has to know of one scenario's comparison."""
        compared = self._compared.get(scenario_id)
        return compared.notes if compared is not None else ()

    def comparison(self) -> Comparison:
        """What was compared by now."""
        return Comparison(tuple(self._compared[name] for name in sorted(self._compared)))


def _ended(event: ScenarioFinished) -> str:
    verb = "fails" if event.outcome is Outcome.FAILED else "breaks"
    return f"{verb} ({event.message.splitlines()[0][:200]})" if event.message else verb
