"""What happens in a run, as frozen values: the only thing that reporters see.

Order of a run: one RunStarted; for each scenario ScenarioStarted, then its StepStarted /
StepFinished pairs, Diagnostics (on failure, taken before the cleanup), ScenarioFinished; one
RunFinished. Events of scenarios that run in parallel interleave; each names its scenario. A
RunStopping may come anywhere between, and more than once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class Outcome(StrEnum):
    """How a scenario ended.

    ``failed``: the target did not do what the scenario says. ``error``: the suite or the machinery
    under it broke. ``skipped``: not supported, with the reason. ``lost``: planned, never reported.
    """

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """What reporters need to know of a scenario.

    Attributes:
        id: the public id: path below the scenario root without suffix, for example
            ``core/shared-template-two-containers``.
        digest: ``sha256:`` of the document's canonical JSON.
    """

    id: str
    name: str
    summary: str
    level: str
    feature: str
    tier: str
    references: tuple[str, ...]
    file: str
    line: int
    digest: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The header: what was planned, against what."""

    run: str
    target: str
    planned: tuple[PlannedScenario, ...]
    kubernetes_version: str
    driver: str | None
    simulated: tuple[str, ...]
    versions: Mapping[str, str]
    suite_version: str
    scenario_set_digest: str
    started_at: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScenarioStarted:
    """A scenario begins, in a namespace of its own."""

    scenario: PlannedScenario
    namespace: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step begins. ``index`` counts from 0."""

    scenario: str
    index: int
    title: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step ended.

    Attributes:
        observed: what was seen, in a form that can be compared between targets: no uids, no
            times, no generated names.
    """

    scenario: str
    index: int
    title: str
    outcome: Outcome
    message: str
    seconds: float
    observed: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What was there when a scenario failed: name -> text."""

    scenario: str
    items: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScenarioFinished:
    """A scenario ended, after its cleanup.

    Attributes:
        message: why it failed, erred or was skipped; empty when it passed.
        where: ``file:line`` of the step that decided.
        cleanup: ``passed``, ``failed`` or ``skipped`` (nothing was made); a failed one fails the
            scenario.
        left: what the cleanup could not remove.
        decisions: allocations that were made meanwhile (``targets.base.Decision`` as JSON).
        undecided: snapshots taken when a pod was confirmed to be pending for want of devices.
        seconds: wall time.
    """

    scenario: PlannedScenario
    outcome: Outcome
    message: str
    where: str
    cleanup: Outcome
    left: tuple[str, ...]
    seconds: float
    steps: tuple[StepFinished, ...]
    decisions: tuple[Mapping[str, Any], ...] = ()
    undecided: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RunStopping:
    """The run ends early: no more scenarios are started, those that run clean up.

    Attributes:
        reason: ``interrupted`` (by the user), or which reporter failed and why.
        running: ids of the scenarios that are waited for.
    """

    reason: str
    running: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The footer: a result file without it was cut off.

    Attributes:
        left: what the run made and could not remove.
        terminating: namespaces that are empty, and that the cluster itself was still removing.
    """

    run: str
    counts: Mapping[str, int]
    finished_at: str
    seconds: float
    interrupted: bool
    left: tuple[str, ...]
    terminating: tuple[str, ...] = ()


Event = (
    RunStarted
    | ScenarioStarted
    | StepStarted
    | StepFinished
    | Diagnostics
    | ScenarioFinished
    | RunStopping
    | RunFinished
)


class Reporter(Protocol):
    """Receives every event, one at a time (the engine serialises them)."""

    def handle(self, event: Event) -> None:
        """Take note of one event; must not raise for lack of interest.

        Whatever it raises ends the run early, and the reporter hears nothing more; ``str`` of a
        reporter is its name in the message, for example ``the result file out/results.ndjson``.
        """
        ...


def count(finished: Sequence[ScenarioFinished]) -> dict[str, int]:
    """Outcome -> how many, every outcome present."""
    counts = {str(outcome): 0 for outcome in Outcome}
    for event in finished:
        counts[str(event.outcome)] += 1
    return counts
