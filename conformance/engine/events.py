"""What happens in a run, as frozen values: the only thing that reporters see.

Order of a run: one RunStarted; for each scenario ScenarioStarted, then its StepStarted /
StepFinished pairs, Diagnostics (on failure, taken before the cleanup), ScenarioCompared (where a
comparison was asked for), ScenarioFinished; one RunFinished. Events of scenarios that run in
parallel interleave; each names its scenario. A RunStopping may come anywhere between, and more than
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from conformance.engine.verdicts import ScenarioCompared, recorded
from conformance.targets.overlaps import Overlap


class Outcome(StrEnum):
    """How a scenario ended.

    ``failed``: the target did not do what the scenario says. ``known``: so it is, and that is a
    known issue of this version of Kubernetes, which is not held against a driver. ``error``: the
    suite or the machinery under it broke. ``skipped``: not supported, with the reason. ``lost``:
    planned, never reported.
    """

    PASSED = "passed"
    FAILED = "failed"
    KNOWN = "known"
    ERROR = "error"
    SKIPPED = "skipped"
    LOST = "lost"


@recorded
@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """What reporters need to know of a scenario.

    Attributes:
        id: the public id: path below the scenario root without suffix, for example
            ``core/shared-template-two-containers``.
        references: where the behaviour is written down; those that can be followed come first.
        digest: ``sha256:`` of the document's canonical JSON.
        kubernetes: of which versions its rule is.
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
    kubernetes: str = ">=1.34"


@recorded
@dataclass(frozen=True, slots=True)
class RunStarted:
    """The header: what was planned, against what.

    Attributes:
        simulated: what is simulated, in words; empty where nothing is.
        versions: component -> version.
        feature_gates: the gates of the target that are known to be on or off.
        driver_profile: the driver profile as a document, credentials left out; None without one.
        driver_profile_digest: ``sha256:`` of its canonical JSON.
        image: that scenario pods run.
        compared: whether each scenario is judged against the reference.
        options: what else the user asked for: target, selection, simulated machine, workers, ...
    """

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
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    driver_profile: Mapping[str, Any] | None = None
    driver_profile_digest: str | None = None
    image: str = ""
    compared: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def driver_profile_name(self) -> str:
        """``metadata.name`` of the driver profile, ``?`` if it has none."""
        metadata = (self.driver_profile or {}).get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        return name if isinstance(name, str) else "?"


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


@recorded
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


@recorded
@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A known issue: its name in ``known-issues.yaml``, and where to read of it."""

    name: str
    link: str

    def __str__(self) -> str:
        return f"known issue {self.name} ({self.link})"


@recorded
@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What was there when a scenario failed: name -> text."""

    scenario: str
    items: Mapping[str, str]


@recorded
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
        overlaps: devices that two claims had at once, one of them the scenario's. It failed by
            those that are told in its ``namespace``; the others are told by another scenario.
        namespace: the scenario's; empty where it had none.
        known_issues: what a failure is, if the outcome is ``known``.
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
    overlaps: tuple[Overlap, ...] = ()
    namespace: str = ""
    known_issues: tuple[KnownFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class RunStopping:
    """The run ends early: no more scenarios are started, those that run clean up.

    Attributes:
        reason: ``interrupted`` (by the user), or which reporter failed and why.
        running: ids of the scenarios that are waited for.
    """

    reason: str
    running: tuple[str, ...] = ()


@recorded
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
    | ScenarioCompared
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
