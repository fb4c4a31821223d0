"""Events of one scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from conformance.results.events.account import Account
from conformance.results.events.comparison import Seconds, recorded
from conformance.scenario.base import VersionRange
from conformance.seam.overlaps import Overlap


class Outcome(StrEnum):
    """How a scenario ended.

    Members:
        FAILED: the target did not do what the scenario says.
        KNOWN: so it is, by a known issue of this version of Kubernetes, not of a driver.
        FLAKY: passed after a failure in the same run (``--retries``), which is no clean pass.
        ERROR: the suite or the machinery under it broke.
        SKIPPED: not supported, with the reason.
        LOST: planned, never reported.
    """

    PASSED = "passed"
    FAILED = "failed"
    KNOWN = "known"
    FLAKY = "flaky"
    ERROR = "error"
    SKIPPED = "skipped"
    LOST = "lost"


ANY_VERSION = ">=1.34"
"""Of a scenario whose rule holds for every Kubernetes with the stable API."""


@recorded
@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """What reporters need to know of a scenario.

    Attributes:
        id: path below the scenario root without suffix, for example
            ``core/shared-template-two-containers``.
        references: where the behaviour is written down; those that can be followed come first.
        digest: ``sha256:`` of the document's canonical JSON.
        kubernetes: the versions whose rule it is.
        provisional: does not count in a conformance report.
        needs: what its driver must not be unable to (``cannot`` of a driver profile).
        scheduled: whether it has pods for a scheduler.
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
    needs: tuple[str, ...] = ()
    scheduled: bool = False


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
        observed: what its expectations saw, comparable between targets: no uids, no times, no
            generated names.
    """

    scenario: str
    index: int
    title: str
    outcome: Outcome
    message: str
    seconds: Seconds
    observed: tuple[Mapping[str, Any], ...] = ()


@recorded
@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A known issue: its name in ``known-issues.yaml``, and where to read about it."""

    name: str
    link: str

    def __str__(self) -> str:
        return f"known issue {self.name} ({self.link})"


@recorded
@dataclass(frozen=True, slots=True)
class Diagnostics:
    """State of the target when a scenario failed: name -> text."""

    scenario: str
    items: Mapping[str, str]


@recorded
@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed attempt at a scenario that was retried.

    Attributes:
        outcome: ``failed`` or ``error``.
        where: ``file:line`` of the step that decided.
    """

    outcome: Outcome
    message: str
    where: str
    seconds: Seconds


@recorded
@dataclass(frozen=True, slots=True)
class ScenarioFinished:
    """A scenario ended, after its cleanup.

    Attributes:
        message: why it failed, erred or was skipped; empty when it passed.
        where: ``file:line`` of the step that decided.
        cleanup: ``passed``, ``failed`` (so has the scenario) or ``skipped`` (nothing was made).
        left: what the cleanup could not remove.
        decisions: allocations made meanwhile (``kube.observations.Decision`` as JSON).
        undecided: snapshots taken when a pod was confirmed to be pending for want of devices.
        overlaps: devices that two claims had at once, one of them the scenario's. It failed by
            those of its own ``namespace``; another scenario reports the rest.
        namespace: the scenario's; empty where it had none.
        known_issues: what a failure is, if the outcome is ``known``.
        seconds: wall time of the last attempt, as everything else but ``attempts``.
        attempts: those before the last, each of which failed.
        started_at: RFC 3339, to the millisecond; empty where nothing began.
        latencies: seconds for which claims waited for devices (`Scope.latencies`).
        account: what was said of its pods, in a tier with nodes; None where it is not known.
    """

    scenario: PlannedScenario
    outcome: Outcome
    message: str
    where: str
    cleanup: Outcome
    left: tuple[str, ...]
    seconds: Seconds
    steps: tuple[StepFinished, ...]
    decisions: tuple[Mapping[str, Any], ...] = ()
    undecided: tuple[Mapping[str, Any], ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    namespace: str = ""
    known_issues: tuple[KnownFailure, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    started_at: str = ""
    latencies: tuple[Seconds, ...] = ()
    account: Account | None = None

    def real(self, title: str) -> str:
        """Return a step's title with the real names of objects, which end as the namespace does."""
        unique = self.namespace.rpartition("-")[2]
        return title.replace("-*", f"-{unique}") if unique else title


def count(finished: Sequence[ScenarioFinished]) -> dict[str, int]:
    """Return outcome -> number of scenarios, every outcome present."""
    counts = {str(outcome): 0 for outcome in Outcome}
    for event in finished:
        counts[str(event.outcome)] += 1
    return counts
