"""Where a result file contradicts itself.

A digest says that a file was not changed by somebody careless; it says nothing of one who computes
it again. What a run writes hangs together, though: outcomes and steps, scenarios and their
documents, decisions and verdicts, the header and what the snapshots show. Evidence in which it does
not is no evidence, so no report is made of it and none is verified.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.certify.judging import rejudged
from conformance.compare.demands import demand_of
from conformance.compare.judging import Witness
from conformance.engine.events import Outcome, PlannedScenario, RunStarted, ScenarioFinished
from conformance.errors import ConformanceError, ExitCode
from conformance.resultfile.read import RunResult
from conformance.targets.cluster.capabilities import simulated_devices

MAX_LINES = 20
"""Of one error; more help nobody."""

REFERENCE_DEVICES = "NVML"
"""What the reference calls its devices among what it simulates."""

_VERSION = re.compile(r"v?(\d+\.\d+(?:\.\d+)?)(?:[-+.].*)?")


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing that is not as it is claimed.

    Attributes:
        path: where: in the report (``$.profiles[0].statistics.passed``), or file and line in the
            result file.
        message: what is wrong, with both values.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class EvidenceError(ConformanceError):
    """A result file that contradicts itself; the message has a line for each contradiction."""

    exit_code = ExitCode.NOT_CONFORMANT

    def __init__(self, found: Iterable[Discrepancy]) -> None:
        self.found = tuple(found)
        lines = [str(item) for item in self.found[:MAX_LINES]]
        if self.found[MAX_LINES:]:
            lines.append(f"and {len(self.found) - MAX_LINES} more contradictions")
        super().__init__("\n".join(lines))


def contradictions(result: RunResult, witness: Witness | None = None) -> tuple[Discrepancy, ...]:
    """Every contradiction in a result file, in the order of its parts.

    Args:
        result: the file.
        witness: who judges its allocations again; None is the reference that the suite ships.
    """
    found = [Discrepancy(result.where("header"), text) for text in _header(result)]
    seen: set[str] = set()
    for event in result.finished:
        around = [text for text in _surroundings(event, result.run) if text not in seen]
        seen.update(around)  # what is wrong in the header is told once, by the first witness
        where = result.where("scenario", event.scenario.id)
        texts = (*_scenario(event), *around)
        found += [Discrepancy(where, f"{event.scenario.id}: {text}") for text in texts]
    found += [Discrepancy(result.where("comparison"), text) for text in _compared(result)]
    if result.comparison is not None:
        texts = tuple(rejudged(result.comparison, result.finished, witness))
        found += [Discrepancy(result.where("comparison"), text) for text in texts]
    return tuple(found)


def scenario_set_digest(planned: Iterable[PlannedScenario]) -> str:
    """``sha256:`` over the sorted lines ``<id> <digest>`` of a set of scenarios."""
    lines = sorted(f"{item.id} {item.digest}\n" for item in planned)
    text = "".join(lines).encode("utf-8", "replace")
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def _header(result: RunResult) -> Iterator[str]:
    run = result.run
    digest = scenario_set_digest(run.planned)
    if digest != run.scenario_set_digest:
        yield (
            f"the header's scenario-set digest is {run.scenario_set_digest}, that of its"
            f" scenarios is {digest}"
        )
    version = _VERSION.fullmatch(run.kubernetes_version)
    told = _VERSION.fullmatch(str(run.versions.get("kubernetes", "")))
    if version is None:
        yield f"kubernetesVersion {run.kubernetes_version!r} is no version of Kubernetes"
    elif told is not None and told[1] != version[1]:
        yield (
            f"kubernetesVersion is {run.kubernetes_version}, versions.kubernetes"
            f" {run.versions['kubernetes']}"
        )
    if not run.simulated:
        if run.target == "reference" or "reference" in run.versions:
            yield "the run was on the reference, and the header says that nothing was simulated"
        for name, text in run.versions.items():
            if "simulat" in f"{name} {text}".lower():
                yield f"versions.{name} is {text!r}, and the header says that nothing was simulated"


def _scenario(event: ScenarioFinished) -> Iterator[str]:
    """What one scenario says of itself."""
    if event.outcome is Outcome.SKIPPED and (event.steps or event.decisions or event.undecided):
        yield "was skipped, and has steps or decisions"
    if event.outcome is not Outcome.PASSED:
        return
    for step in event.steps:
        if step.outcome is not Outcome.PASSED:
            yield f"passed, and its step {step.index} ({step.title}) {_said(step.outcome)}"
    if event.cleanup is not Outcome.PASSED:
        yield f"passed, and its cleanup {_said(event.cleanup)}"
    if event.left:
        yield f"passed, and its cleanup left {', '.join(event.left)}"
    if [step.index for step in event.steps] != list(range(len(event.steps))):
        yield "its steps are not in their order"
    demand = demand_of(event.scenario)
    if demand is None:
        if not event.steps:
            yield "passed without a step"
        return
    if len(event.steps) != len(demand.steps):
        yield f"passed with {len(event.steps)} steps; the scenario has {len(demand.steps)}"
        return
    for step, (verb, observations) in zip(event.steps, demand.steps, strict=True):
        if step.title.partition(" ")[0] != verb:
            yield f"its step {step.index} is {step.title!r}; the scenario's is to {verb}"
        elif len(step.observed) != observations:
            yield (
                f"its step {step.index} ({step.title}) observed {len(step.observed)} things; the"
                f" scenario has {observations} expectations there"
            )


def _surroundings(event: ScenarioFinished, run: RunStarted) -> Iterator[str]:
    """What the snapshots of a scenario say of the target, against what the header says."""
    version = _VERSION.fullmatch(run.kubernetes_version)
    seen: set[str] = set()
    for snapshot in _snapshots(event):
        told = _VERSION.fullmatch(str(snapshot.get("kubernetes", "")))
        if version and told and told[1] != version[1]:
            seen.add(
                f"a snapshot is of Kubernetes {told[1]}, the header says {run.kubernetes_version}"
            )
        for text in _simulated(run.driver, snapshot):
            if text not in run.simulated and REFERENCE_DEVICES not in run.simulated:
                seen.add(f"the ResourceSlices say that {text} are simulated, the header does not")
    if event.scenario.tier != "allocation":
        for decision in event.decisions:
            drivers = _drivers(decision)
            if drivers and run.driver not in drivers:
                seen.add(
                    f"devices of {', '.join(sorted(drivers))} were allocated, the header says that"
                    f" the driver is {run.driver}"
                )
    yield from sorted(seen)


def _compared(result: RunResult) -> Iterator[str]:
    """Whether there is a comparison exactly where there must be one."""
    asked = result.run.options.get("compare")
    if result.comparison is None:
        if asked is True:
            yield "the run was to be compared (options.compare), and there is no comparison"
        elif any(event.decisions or event.undecided for event in result.finished):
            yield "decisions were recorded for a comparison, and there is none"
    elif asked is False:
        yield "the run was not to be compared (options.compare), and there is a comparison"


def _snapshots(event: ScenarioFinished) -> Iterator[Mapping[str, Any]]:
    for item in (*event.decisions, *event.undecided):
        snapshot = item.get("snapshot", item)
        if isinstance(snapshot, Mapping):
            yield snapshot


def _simulated(driver: str | None, snapshot: Mapping[str, Any]) -> list[str]:
    try:
        return simulated_devices(driver, snapshot.get("slices") or ())
    except (AttributeError, KeyError, TypeError):
        return []  # a snapshot of another form is told where it is judged


def _drivers(decision: Mapping[str, Any]) -> set[str]:
    try:
        return {
            str(result["driver"])
            for allocation in decision["allocations"]
            for result in allocation["devices"]["results"]
        }
    except (AttributeError, KeyError, TypeError):
        return set()  # likewise


def _said(outcome: Outcome) -> str:
    return {
        Outcome.PASSED: "passed",
        Outcome.FAILED: "failed",
        Outcome.ERROR: "broke",
        Outcome.SKIPPED: "was skipped",
        Outcome.LOST: "was lost",
    }[outcome]
