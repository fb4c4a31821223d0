"""What happens in a run, as frozen values: the only thing that reporters see.

Order of a run: one RunStarted; for each scenario, and again for each attempt at it,
ScenarioStarted, then its StepStarted / StepFinished pairs, Diagnostics (on failure, taken before
the cleanup), ScenarioCompared (where a comparison was asked for), ScenarioFinished; one
RunFinished. Events of scenarios that run in parallel interleave; each names its scenario. A
RunStopping may come anywhere between, and more than once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Protocol

from pydantic import Field

from conformance.engine.options import MAX_SHARDS
from conformance.engine.verdicts import ScenarioCompared, recorded
from conformance.scenario.base import VersionRange
from conformance.targets.seam.overlaps import Overlap
from conformance.text import counted


class Outcome(StrEnum):
    """How a scenario ended.

    ``failed``: the target did not do what the scenario says. ``known``: so it is, and that is a
    known issue of this version of Kubernetes, which is not held against a driver. ``flaky``: it
    passed after it had failed in the same run (``--retries``), which is no clean pass. ``error``:
    the suite or the machinery under it broke. ``skipped``: not supported, with the reason.
    ``lost``: planned, never reported.
    """

    PASSED = "passed"
    FAILED = "failed"
    KNOWN = "known"
    FLAKY = "flaky"
    ERROR = "error"
    SKIPPED = "skipped"
    LOST = "lost"


ANY_VERSION = ">=1.34"
"""Of a scenario whose rule is that of every Kubernetes with the stable API."""


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
        provisional: it is tried out, and counts for and against nobody in a conformance report.
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
    kubernetes: VersionRange = ANY_VERSION
    provisional: bool = False


ShardNumber = Annotated[int, Field(ge=1, le=MAX_SHARDS)]


@recorded
@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Which part of a plan a run is.

    Attributes:
        index: from 1.
        count: how many parts there are.
        others: what the other parts run, so that none can be lost unnoticed.
    """

    index: ShardNumber
    count: ShardNumber
    others: tuple[PlannedScenario, ...]


@recorded
@dataclass(frozen=True, slots=True)
class ResumedPart:
    """A run that was interrupted or killed, and what is kept of it in the run that went on.

    Attributes:
        run: its id.
        digest: ``sha256:`` of the result file that it left.
        scenarios: ids of those that it ended, and that were not run again; sorted.
        seconds: how long it ran, until its last result where it was killed.
        left: what it could not remove; that was gone when the next run began.
    """

    run: str
    digest: str
    scenarios: tuple[str, ...]
    seconds: Annotated[float, Field(ge=0)]
    left: tuple[str, ...] = ()


@recorded
@dataclass(frozen=True, slots=True)
class MergedPart:
    """The run of one shard in a result that was merged.

    Attributes:
        index: the shard's, from 1.
        run: its id.
        digest: ``sha256:`` of its result file.
        scenarios: how many it was to run.
        resumed: as in the header of its result file.
    """

    index: ShardNumber
    run: str
    digest: str
    scenarios: int
    resumed: tuple[ResumedPart, ...] = ()


@recorded
@dataclass(frozen=True, slots=True)
class Merged:
    """What a merged result is made of; a shard without a part is missing.

    Attributes:
        count: how many shards the plan has.
        parts: in the order of their indexes.
    """

    count: ShardNumber
    parts: tuple[MergedPart, ...]

    @property
    def missing(self) -> tuple[int, ...]:
        """Indexes of the shards that are missing."""
        there = {part.index for part in self.parts}
        return tuple(index for index in range(1, self.count + 1) if index not in there)


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
        time_factor: by what the time limits were multiplied.
        shard: None where the run is the whole of its plan.
        merged: None where it is one run, and not several shards'.
        resumed: the runs that this one went on with, oldest first; () where it began anew. The time
            it started is then the first one's.
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
    time_factor: float = 1.0
    shard: ShardPlan | None = None
    merged: Merged | None = None
    resumed: tuple[ResumedPart, ...] = ()

    @property
    def resumption(self) -> str:
        """How often it was gone on with, and after which runs; empty where it began anew."""
        if not self.resumed:
            return ""
        kept = sum(len(part.scenarios) for part in self.resumed)
        runs = ", ".join(part.run for part in self.resumed)
        times = "once" if len(self.resumed) == 1 else f"{len(self.resumed)} times"
        return f"{times}, after {runs}; {counted(kept, 'scenario')} ended before"

    @property
    def whole_plan(self) -> tuple[PlannedScenario, ...]:
        """With what other shards run."""
        return (*self.planned, *(self.shard.others if self.shard else ()))

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
class Attempt:
    """An attempt at a scenario that was tried again.

    Attributes:
        outcome: ``failed`` or ``error``.
        message: why.
        where: ``file:line`` of the step that decided.
    """

    outcome: Outcome
    message: str
    where: str
    seconds: float


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
        seconds: wall time; of the last attempt, as all else but ``attempts``.
        attempts: those before the last, each of which failed.
        started_at: RFC 3339, to the millisecond; empty where nothing began.
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
    attempts: tuple[Attempt, ...] = ()
    started_at: str = ""

    def real(self, title: str) -> str:
        """A step's title with the names that objects had; those end as the namespace does."""
        unique = self.namespace.rpartition("-")[2]
        return title.replace("-*", f"-{unique}") if unique else title


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
