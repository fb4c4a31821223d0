"""The result of a run, collected from its events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from conformance.results.events.account import PARTS
from conformance.results.events.comparison import ScenarioCompared, Verdict
from conformance.results.events.dispatch import Event
from conformance.results.events.run import RunFinished, RunStarted
from conformance.results.events.scenario import (
    Diagnostics,
    KnownFailure,
    Outcome,
    PlannedScenario,
    ScenarioFinished,
)
from conformance.scenario.loader import LoadedScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """The result of one scenario; ``finished`` is None if it was never reported."""

    scenario: PlannedScenario
    outcome: Outcome
    finished: ScenarioFinished | None
    compared: ScenarioCompared | None
    diagnostics: Mapping[str, str]

    @property
    def message(self) -> str:
        """Why the outcome is not ``passed``."""
        message = self.finished.message if self.finished else ""
        lost = "planned, and never reported" if self.outcome is Outcome.LOST else ""
        return message or lost

    @property
    def against_rules(self) -> bool:
        """Whether an allocation is against the rules, which is a failure whatever the outcome.

        Not if a step failed by a known issue: the allocation is what that issue is about.
        """
        if self.compared is None or self.finished is None or self.outcome is not Outcome.KNOWN:
            return self.compared is not None and not self.compared.conformant
        in_a_step = any(step.outcome is Outcome.FAILED for step in self.finished.steps)
        return not in_a_step and not self.compared.conformant

    @property
    def known(self) -> bool:
        """Whether all that failed is a known issue of Kubernetes."""
        return self.outcome is Outcome.KNOWN and not self.against_rules

    @property
    def reasons(self) -> str:
        """The message, and the comparison's notes if an allocation is against the rules."""
        notes = self.compared.notes if self.against_rules and self.compared is not None else ()
        return "\n".join([*filter(None, [self.message]), *notes])

    @property
    def failed(self) -> bool:
        """Whether it counts as a failure, unlike a known issue."""
        return self.against_rules or self.outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.LOST)

    @property
    def bad(self) -> bool:
        """Whether it is neither a pass nor a skip."""
        return self.against_rules or self.outcome not in (Outcome.PASSED, Outcome.SKIPPED)


class Latency(NamedTuple):
    """Seconds from a claim and its pod to the allocation, by nearest rank.

    What a watch of the suite sees is in it: the scheduler, the API server, and this machine. Pods
    that had to wait for something do not count.
    """

    claims: int
    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Latency | None:
        """Return what was measured in short; None for nothing."""
        ordered_seconds = sorted(seconds)
        if not ordered_seconds:
            return None
        at = (
            ordered_seconds[math.ceil(len(ordered_seconds) * share) - 1]
            for share in (0.5, 0.9, 0.99)
        )
        return cls(len(ordered_seconds), *at)

    def __str__(self) -> str:
        return (
            f"{self.claims} claims waited for their devices: p50 {self.p50:.2f} s,"
            f" p90 {self.p90:.2f} s, p99 {self.p99:.2f} s"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run that has just ended or was read from its result file.

    Attributes:
        run: the header.
        compared: empty without a comparison.
        diagnostics: scenario id -> name -> text.
        footer: None if the run was cut off.
    """

    run: RunStarted
    finished: tuple[ScenarioFinished, ...]
    compared: tuple[ScenarioCompared, ...] = ()
    diagnostics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    footer: RunFinished | None

    @property
    def interrupted(self) -> bool:
        return self.footer is None or self.footer.interrupted

    @property
    def left(self) -> tuple[str, ...]:
        """What the run made and could not remove."""
        return () if self.footer is None else self.footer.left

    @property
    def outcomes(self) -> dict[Outcome, tuple[str, ...]]:
        """Outcome -> sorted scenario ids, every outcome present."""
        return by_outcome(self.run.planned, self.finished)

    @property
    def scenarios(self) -> tuple[ScenarioResult, ...]:
        """The planned scenarios, sorted by id."""
        outcome_of = {name: outcome for outcome, names in self.outcomes.items() for name in names}
        finished = {event.scenario.id: event for event in self.finished}
        compared = {item.scenario: item for item in self.compared}
        return tuple(
            ScenarioResult(
                scenario=item,
                outcome=outcome_of[item.id],
                finished=finished.get(item.id),
                compared=compared.get(item.id),
                diagnostics=self.diagnostics.get(item.id, {}),
            )
            for item in sorted(self.run.planned, key=lambda item: item.id)
        )

    @property
    def unreported(self) -> tuple[PlannedScenario, ...]:
        """Planned scenarios without a result."""
        reported = {event.scenario.id for event in self.finished}
        return tuple(item for item in self.run.planned if item.id not in reported)

    def rest(self, scenarios: Sequence[LoadedScenario]) -> list[LoadedScenario]:
        """Return those of these scenarios that have no result."""
        reported = {event.scenario.id for event in self.finished}
        return [item for item in scenarios if item.id not in reported]

    @property
    def known_issues(self) -> dict[KnownFailure, tuple[str, ...]]:
        """Known issue -> ids of the scenarios that failed by it alone."""
        ids_by_issue: dict[KnownFailure, tuple[str, ...]] = {}
        for row in self.scenarios:
            if row.outcome is Outcome.KNOWN and row.finished is not None:
                for issue in row.finished.known_issues:
                    ids_by_issue[issue] = (*ids_by_issue.get(issue, ()), row.scenario.id)
        return ids_by_issue

    @property
    def latency(self) -> Latency | None:
        """How long claims waited for devices; None where nothing was measured."""
        return Latency.of(seconds for event in self.finished for seconds in event.latencies)

    @property
    def verdicts(self) -> dict[Verdict, int]:
        return count_verdicts(self.compared)


def retold(result: RunResult) -> Iterator[Event]:
    """Yield the events of a run again, for reporters."""
    compared = {item.scenario: item for item in result.compared}
    yield result.run
    for event in result.finished:
        name = event.scenario.id
        if name in result.diagnostics:
            yield Diagnostics(name, result.diagnostics[name])
        if name in compared:
            yield compared[name]
        yield event
    if result.footer is not None:
        yield result.footer


def by_outcome(
    planned: Sequence[PlannedScenario], finished: Sequence[ScenarioFinished]
) -> dict[Outcome, tuple[str, ...]]:
    """Return outcome -> sorted scenario ids, every outcome present.

    A planned scenario without a result is ``lost``; one whose cleanup failed is ``failed``,
    whatever was reported.
    """
    outcomes: dict[str, Outcome] = {item.id: Outcome.LOST for item in planned}
    for event in finished:
        outcome = event.outcome
        well = outcome in (Outcome.PASSED, Outcome.KNOWN, Outcome.FLAKY)
        if well and event.cleanup not in (Outcome.PASSED, Outcome.SKIPPED):
            outcome = Outcome.FAILED
        outcomes[event.scenario.id] = outcome
    return {
        outcome: tuple(sorted(key for key, value in outcomes.items() if value is outcome))
        for outcome in Outcome
    }


def count_verdicts(compared: Sequence[ScenarioCompared]) -> dict[Verdict, int]:
    """Return verdict -> how many decisions have it, every verdict present."""
    verdicts = [item.verdict for scenario in compared for item in scenario.judgements]
    return {verdict: verdicts.count(verdict) for verdict in Verdict}


def summarize_accounts(compared: Sequence[ScenarioCompared]) -> str:
    """Return how the accounts of all scenarios compare, in a line; empty where none did."""
    explained: Counter[str] = Counter()
    for scenario in compared:
        explained.update(scenario.explained)
    unexplained = sum(
        item.step is None and item.title in PARTS
        for scenario in compared
        for item in scenario.differences
    )
    if not explained and not unexplained:
        return ""
    rules = ", ".join(f"{name} {count}" for name, count in explained.most_common())
    return (
        f"lines of events, pods and driver calls that differ: {unexplained};"
        f" {explained.total()} more are explained ({rules or 'none'})"
    )


class RunCollector:
    """A reporter that collects a :class:`RunResult`."""

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self.finished: list[ScenarioFinished] = []
        self.compared: dict[str, ScenarioCompared] = {}
        self.diagnostics: dict[str, dict[str, str]] = {}
        self.footer: RunFinished | None = None

    def handle(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.run = event
            case Diagnostics():
                self.diagnostics.setdefault(event.scenario, {}).update(event.items)
            case ScenarioCompared():
                self.compared[event.scenario] = event
            case ScenarioFinished():
                self.finished.append(event)
            case RunFinished():
                self.footer = event
            case _:
                pass

    def result(self) -> RunResult:
        """Return the result so far, once the run has started."""
        assert self.run is not None, "there was no RunStarted"
        return RunResult(
            run=self.run,
            finished=tuple(self.finished),
            compared=tuple(self.compared.values()),
            diagnostics=self.diagnostics,
            footer=self.footer,
        )
