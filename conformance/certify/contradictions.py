"""Where a result file contradicts itself, or the scenarios that the suite ships.

A digest shows careless changes to a file; anybody can compute it again. What can be worked out
again from the file is: digests, outcomes, what the snapshots show of the target, and every verdict.
Its runs and its times are held against one another (`joined`, `times`).
Evidence in which one of these differs is no evidence, so no report is made of it and none is
verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from conformance.certify.codes import Code, Finding
from conformance.certify.joined import joined_contradictions
from conformance.certify.times import TimeCheck
from conformance.compare.compare_scenarios import compare_scenario
from conformance.compare.conclude import list_inabilities
from conformance.digest import document_digest, set_digest
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.result import count_verdicts
from conformance.results.events.run import RunStarted
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from conformance.results.knownissues import versions_of_kubernetes, with_known_issues
from conformance.results.read import RecordedRun
from conformance.seam.values import simulated_devices
from kube.base.errors import ConformanceError, ExitCode

MAX_LINES = 20  # The most lines of one error message.

SEVERAL: Final = "severalDevicesOnOneNode"

REFERENCE_DEVICES = "NVML"  # What the reference calls its devices among what it simulates.


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One difference between what is claimed and what the evidence shows.

    Attributes:
        path: where: in the report (``$.profiles[0].statistics.passed``), or file and line in the
            result file.
        code: which rule is broken; unlike the message it never changes.
        message: what is wrong, with both values.
    """

    path: str
    code: Code
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} [{self.code}]"


class EvidenceError(ConformanceError):
    """A result file that contradicts itself; the message has a line for each contradiction."""

    exit_code = ExitCode.NOT_CONFORMANT

    def __init__(self, found: Iterable[Discrepancy]) -> None:
        self.found = tuple(found)
        lines = [str(item) for item in self.found[:MAX_LINES]]
        if self.found[MAX_LINES:]:
            lines.append(f"and {len(self.found) - MAX_LINES} more contradictions")
        super().__init__("\n".join(lines))


def find_contradictions(
    result: RecordedRun, catalogue: Sequence[PlannedScenario]
) -> tuple[Discrepancy, ...]:
    """Return every contradiction in a result file, in the order of its parts.

    ``catalogue``: every scenario that the suite ships. Scenarios of others are no contradiction.
    """
    run = result.run
    times = TimeCheck(result)
    header = (
        *_check_header(run),
        *times.of_run(),
        *joined_contradictions(result),
        *_check_scenarios(run, catalogue),
    )
    discrepancies = [Discrepancy(result.where("header"), *item) for item in header]
    compared = {item.scenario: item for item in result.compared}
    reported: set[Finding] = set()
    for event in result.finished:
        name = event.scenario.id
        around = [item for item in _check_snapshots(event, run) if item not in reported]
        reported.update(around)  # what is wrong in the header is reported once
        for record, findings in (
            ("scenario", (*_check_scenario(event, run), *times.of_scenario(event), *around)),
            ("compared", _check_comparison(run, event, compared.get(name))),
        ):
            where = result.where(record, name)
            discrepancies += [
                Discrepancy(where, code, f"{name}: {text}") for code, text in findings
            ]
    return tuple(discrepancies)


def _check_header(run: RunStarted) -> Iterator[Finding]:
    stated_digest, digest = run.scenario_set_digest, set_digest(run.planned)
    if digest != stated_digest:
        stated = f"the header's scenario-set digest is {stated_digest}"
        text = f"{stated}, that of its scenarios is {digest}"
        yield "scenario-set-digest", text
    if run.driver_profile is not None:
        profile, digest = run.driver_profile_digest, document_digest(run.driver_profile)
        if digest != profile:
            text = f"the header's driver-profile digest is {profile}, that of its profile is"
            yield "driver-profile-digest", f"{text} {digest}"


def _check_scenarios(run: RunStarted, catalogue: Sequence[PlannedScenario]) -> Iterator[Finding]:
    """Check that scenarios with the ids of the suite's are the suite's."""
    shipped = {item.id: item for item in catalogue}
    for item in sorted(run.planned, key=lambda item: item.id):
        ours = shipped.get(item.id)
        if ours is None:
            continue
        if ours.digest != item.digest:
            text = "is not the scenario that the suite ships (its digest differs)"
        elif (ours.level, ours.feature) != (item.level, item.feature):
            text = (
                f"is {ours.level} {ours.feature} in the suite, the header says"
                f" {item.level} {item.feature}"
            )
        elif (
            replace(
                item,
                tier=ours.tier,
                kubernetes=ours.kubernetes,
                provisional=ours.provisional,
                needs=ours.needs,
            )
            != item
        ):
            text = "its tier, versions, needs or provisional are not those in the suite"
        else:
            continue
        yield "scenario-differs", f"{item.id}: {text}"


def _check_scenario(event: ScenarioFinished, run: RunStarted) -> Iterator[Finding]:
    """Check that an outcome is that of the steps and the cleanup."""
    if event.outcome is Outcome.SKIPPED and (event.steps or event.decisions or event.undecided):
        yield "skipped-and-ran", "was skipped, and has steps or decisions"
    for name in event.scenario.needs:
        if event.steps and name in list_inabilities(run):
            yield "cannot", f"ran, and the driver profile says that it cannot {name}"
    if event.outcome is Outcome.KNOWN or event.known_issues:
        failed = replace(event, outcome=Outcome.FAILED, known_issues=())
        if with_known_issues(failed, run.target, versions_of_kubernetes(run)) != event:
            version = run.kubernetes_version
            yield (
                "known-issue",
                f"is not a known issue of Kubernetes {version} as the suite knows them",
            )
    if event.outcome not in (Outcome.PASSED, Outcome.FLAKY):
        return
    if (event.outcome is Outcome.FLAKY) is not bool(event.attempts):
        yield (
            "earlier-attempts",
            f"is {event.outcome}, and {len(event.attempts)} earlier attempts failed",
        )
    if not event.steps:
        yield "passed-without-step", "passed without a step"
    for step in event.steps:
        if step.outcome is not Outcome.PASSED:
            yield (
                "passed-with-failed-step",
                f"passed, and the outcome of its step {step.index} is {step.outcome}",
            )
    for overlap in event.overlaps:
        if overlap.namespace == event.namespace:
            yield "passed-with-overlap", f"passed, and {overlap}"
    if event.cleanup is Outcome.FAILED or event.left:
        yield (
            "passed-with-remains",
            f"passed, and its cleanup left {', '.join(event.left) or 'something'}",
        )


def _check_snapshots(event: ScenarioFinished, run: RunStarted) -> Iterator[Finding]:
    """Yield where the snapshots of a scenario contradict the header."""
    reported: set[Finding] = set()
    for snapshot in recorded_snapshots(event):
        scheduler = run.scheduler_version or run.kubernetes_version
        version = str(snapshot.get("kubernetes", scheduler))
        if version != scheduler:
            text = f"a snapshot is of Kubernetes {version}"
            reported.add(("kubernetes-version", f"{text}, the header says {scheduler}"))
        for simulation in _signs_of_simulation(run.driver, snapshot):
            if simulation not in run.simulated and REFERENCE_DEVICES not in run.simulated:
                text = f"{simulation} are simulated in the ResourceSlices, not in the header"
                reported.add(("simulated", text))
        for node, count in _crowded_nodes(run, snapshot):
            text = f"{node} has {count} devices, and the driver profile says that it cannot"
            reported.add(("cannot", f"{text} {SEVERAL}"))
    if event.scenario.tier != "allocation":
        for decision in event.decisions:
            drivers = _drivers(decision)
            if drivers and run.driver not in drivers:
                text = f"devices of {', '.join(sorted(drivers))} were allocated"
                reported.add(("driver", f"{text}, the header says that the driver is {run.driver}"))
    yield from sorted(reported)


def _check_comparison(
    run: RunStarted, event: ScenarioFinished, claimed: ScenarioCompared | None
) -> Iterator[Finding]:
    """Check that judging the decisions of a scenario again gives what the file says.

    What the reference observed is not in a result file, so that differences and what the reference
    itself did not reach are believed.
    """
    if not run.compared:
        if claimed is not None or event.decisions or event.undecided:
            yield (
                "not-asked-to-compare",
                "has decisions or verdicts, but the header has no comparison",
            )
        return
    if claimed is None:
        yield "not-compared", "was not compared, but the header has a comparison"
        return
    judged_again = compare_scenario(event)
    claimed_verdicts, verdicts = (
        [str(item.verdict) for item in compared.judgements] for compared in (claimed, judged_again)
    )
    if claimed_verdicts != verdicts:
        counts, counts_again = _count_verdicts(claimed), _count_verdicts(judged_again)
        yield "verdicts", f"the verdicts are {counts}, judged again {counts_again}"
    for problem in judged_again.problems:
        if problem not in claimed.problems:
            yield "not-judged", f"cannot be judged again: {problem}"


def _count_verdicts(compared: ScenarioCompared) -> str:
    counts = count_verdicts([compared])
    return ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "none"


def recorded_snapshots(event: ScenarioFinished) -> Iterator[Mapping[str, Any]]:
    """Yield what was recorded of the target in a scenario, one for each decision."""
    for item in (*event.decisions, *event.undecided):
        snapshot = item.get("snapshot", item)
        if isinstance(snapshot, Mapping):
            yield snapshot


def _signs_of_simulation(driver: str | None, snapshot: Mapping[str, Any]) -> list[str]:
    try:
        return simulated_devices(driver, snapshot.get("slices") or ())
    except (AttributeError, KeyError, TypeError):
        return []  # a snapshot of another form is reported where it is judged


def _crowded_nodes(run: RunStarted, snapshot: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return nodes with several devices of a driver that cannot have them, by its profile."""
    try:
        if SEVERAL not in list_inabilities(run):
            return []
        on = Counter(
            str(item["spec"]["nodeName"])
            for item in snapshot["slices"]
            if item["spec"]["driver"] == run.driver and item["spec"].get("nodeName")
            for _ in item["spec"].get("devices") or ()
        )
    except (AttributeError, KeyError, TypeError):
        return []  # likewise
    return [(node, count) for node, count in sorted(on.items()) if count > 1]


def _drivers(decision: Mapping[str, Any]) -> set[str]:
    try:
        return {
            str(result["driver"])
            for allocation in decision["allocations"]
            for result in allocation["devices"]["results"]
        }
    except (AttributeError, KeyError, TypeError):
        return set()  # likewise
