"""Turn a result file into a conformance report.

Everything but the implementation's own particulars comes from the result file, so that somebody
else can make the same report from it (``verify``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from conformance import __version__
from conformance.certify.contradictions import Discrepancy, EvidenceError, find_contradictions
from conformance.certify.driverchecked import DriverChecked, find_misfits, summarize_driver_check
from conformance.certify.model import ConformanceReport, DriverCheckSummary, MetIssue, ProfileResult
from conformance.certify.profiles import Profile
from conformance.certify.shown import claimed_features, count_inventory, feature_results
from conformance.certify.values import (
    ComparisonSummary,
    Evidence,
    Hardware,
    Implementation,
    Known,
    Result,
    Skipped,
    Statistics,
    Suite,
    UsedProfile,
)
from conformance.compare.conclude import conclude, excused_scenarios, explain_uncertified
from conformance.engine.requirements import is_in
from conformance.results.events.result import RunResult
from conformance.results.events.run import RunStarted
from conformance.results.events.scenario import Outcome, PlannedScenario
from conformance.results.read import RecordedRun
from kube.base.errors import ConformanceError, UsageError
from kube.values import KUBE_SCHEDULER


class OtherSuiteError(ConformanceError):
    """The run was of another version of the suite, whose scenarios are not known here."""

    def __init__(self, result: RecordedRun) -> None:
        version = result.run.suite_version
        super().__init__(
            f"{result.where('header')}: the run was of suite {version!r} and this is {__version__},"
            " which has other scenarios and rules, so that nothing can be concluded here; install"
            f" dra-conformance {version} and run this again"
        )


def build_report(
    result: RecordedRun,
    implementation: Implementation,
    profiles: Sequence[Profile],
    catalogue: Sequence[PlannedScenario],
    checked: DriverChecked | None = None,
) -> ConformanceReport:
    """Return the report on a run.

    Args:
        profiles: what to certify for; one that is given twice is reported once.
        checked: the result of driver-check for the same driver.
        catalogue: every scenario that the suite ships. One of a profile that the run did not even
            plan makes the profile partial; others that the run had count for no profile.

    Raises:
        UsageError: the result file was cut off.
        OtherSuiteError: the run was of another version of the suite.
        EvidenceError: the result file contradicts itself, or the result of driver-check does or
            is of another driver.
    """
    if result.run.suite_version != __version__:
        raise OtherSuiteError(result)
    if discrepancies := [
        *find_contradictions(result, catalogue),
        *driver_check_misfits(result, checked, ours=True),
    ]:
        raise EvidenceError(discrepancies)
    return build_believed_report(result, implementation, profiles, catalogue, checked)


def driver_check_misfits(
    result: RecordedRun, checked: DriverChecked | None, *, ours: bool
) -> list[Discrepancy]:
    """Yield where the result of driver-check contradicts itself, or does not fit the run.

    ``ours``: the run was of this version of the suite.
    """
    if checked is None:
        return []
    return [
        Discrepancy(checked.path, *item) for item in find_misfits(checked, result.run, ours=ours)
    ]


def build_believed_report(
    result: RecordedRun,
    implementation: Implementation,
    profiles: Sequence[Profile],
    catalogue: Sequence[PlannedScenario],
    checked: DriverChecked | None = None,
) -> ConformanceReport:
    """Return the report on a run whose result file is believed as it stands. Raises UsageError."""
    if result.footer is None:
        raise UsageError("the result file has no footer, so there is nothing to certify; run again")
    run = result.run
    summary = None if checked is None else summarize_driver_check(checked)
    return ConformanceReport(
        date=result.footer.finished_at,
        implementation=implementation,
        kubernetes_version=run.kubernetes_version,
        target=run.target,
        scheduler=str(run.options.get("scheduler") or KUBE_SCHEDULER),
        driver=run.driver,
        driver_profile=_used_profile(run),
        feature_gates=dict(sorted(run.feature_gates.items())),
        components=dict(sorted(run.versions.items())),
        inventory=count_inventory(result),
        simulated=run.simulated,
        hardware=shown_hardware(result, catalogue),
        suite=Suite(version=run.suite_version, scenario_set_digest=run.scenario_set_digest),
        evidence=Evidence(
            run=run.run,
            digest=result.digest,
            interrupted=result.interrupted,
            joined=run.joined_runs,
        ),
        uncertified=explain_uncertified(result),
        comparison=_comparison(result) if run.compared else None,
        known_issues=tuple(
            MetIssue(name=issue.name, link=issue.link, scenarios=names)
            for issue, names in result.known_issues.items()
        ),
        driver_check=summary,
        profiles=tuple(
            build_profile_result(result, item, catalogue, summary)
            for item in dict.fromkeys(profiles)
        ),
        features=feature_results(result, catalogue),
    )


def foreign_scenarios(result: RunResult, catalogue: Sequence[PlannedScenario]) -> list[str]:
    """Return ids of the run's scenarios that the suite does not ship; they count for no profile."""
    shipped = {item.id for item in catalogue}
    return sorted(item.id for item in result.run.planned if item.id not in shipped)


def shown_hardware(result: RunResult, catalogue: Sequence[PlannedScenario]) -> Hardware:
    """Return what a run shows of hardware; only the suite's of the tier ``device`` count."""
    run = result.run
    spec = (run.driver_profile or {}).get("spec")
    made_up = isinstance(spec, Mapping) and bool(spec.get("syntheticDevices"))
    if run.simulated or made_up or run.target == "reference":
        return Hardware.SIMULATED
    tier = {item.id for item in catalogue if item.tier == "device"}
    outcomes = {row.outcome for row in result.scenarios if row.scenario.id in tier}
    is_shown = Outcome.PASSED in outcomes and outcomes <= {Outcome.PASSED, Outcome.SKIPPED}
    return Hardware.SHOWN if is_shown else Hardware.NOT_SHOWN


def build_profile_result(
    result: RunResult,
    profile: Profile,
    catalogue: Sequence[PlannedScenario],
    checked: DriverCheckSummary | None = None,
) -> ProfileResult:
    """Return what a profile came to in a run: of its scenarios, those of the cluster's Kubernetes.

    ``checked``: what driver-check came to; it counts where the profile asks for it.
    """
    version = result.run.kubernetes_version
    scenario_ids = {
        item.id for item in catalogue if profile.includes(item) and is_in(version, item.kubernetes)
    }
    restricted = _restrict_result(result, scenario_ids)
    outcomes = restricted.outcomes
    excused = excused_scenarios(restricted)
    skipped = [name for name in outcomes[Outcome.SKIPPED] if name not in excused]
    reasons = {event.scenario.id: event.message for event in restricted.finished}
    not_selected = sorted(scenario_ids - {item.id for item in restricted.run.planned})
    strict = profile.skips == "partial"
    conclusion = conclude(
        restricted, skipped=skipped if strict else (), not_selected=not_selected if strict else ()
    )
    unproven = sorted(
        item.id
        for item in restricted.run.planned
        if item.feature in claimed_features(result.run) and item.id in skipped
    )
    verdict = Result.FAILURE if unproven else Result.of(conclusion.code)
    driver_check: Result | Literal["missing"] | None = None
    if profile.driver_check is not None:
        driver_check = "missing" if checked is None else checked.result
        verdict = min(verdict, Result.PARTIAL if checked is None else checked.result, key=_worse)
    if verdict is Result.SUCCESS and explain_uncertified(result):
        verdict = Result.UNCERTIFIED
    return ProfileResult(
        name=profile.name,
        result=verdict,
        statistics=Statistics(**{str(key): len(names) for key, names in outcomes.items()}),
        failed=outcomes[Outcome.FAILED],
        known=tuple(
            Known(scenario=name, issue=issue.name, link=issue.link)
            for issue, names in restricted.known_issues.items()
            for name in names
        ),
        error=outcomes[Outcome.ERROR],
        skipped=tuple(Skipped(scenario=name, reason=reasons.get(name, "")) for name in skipped),
        without=tuple(Skipped(scenario=name, reason=why) for name, why in sorted(excused.items())),
        driver_check=driver_check,
        lost=outcomes[Outcome.LOST],
        not_selected=tuple(not_selected),
        unproven=tuple(unproven),
        comparison=_comparison(restricted) if restricted.run.compared else None,
    )


_worse = [Result.FAILURE, Result.INCONCLUSIVE, Result.PARTIAL, Result.SUCCESS].index


def _restrict_result(result: RunResult, ids: set[str]) -> RunResult:
    """Return the part of a run that is about these scenarios."""
    return RunResult(
        run=replace(
            result.run, planned=tuple(item for item in result.run.planned if item.id in ids)
        ),
        finished=tuple(event for event in result.finished if event.scenario.id in ids),
        compared=tuple(item for item in result.compared if item.scenario in ids),
        footer=result.footer,
    )


def _used_profile(run: RunStarted) -> UsedProfile | None:
    """Return the driver profile, with name and digest."""
    if run.driver_profile is None or run.driver_profile_digest is None:
        return None
    return UsedProfile(
        name=run.driver_profile_name,
        digest=run.driver_profile_digest,
        document=dict(run.driver_profile),
    )


def _comparison(part: RunResult) -> ComparisonSummary:
    return ComparisonSummary(
        verdicts={str(verdict): number for verdict, number in part.verdicts.items()},
        differences=sum(len(item.differences) for item in part.compared),
        not_conformant=tuple(row.scenario.id for row in part.scenarios if row.against_rules),
        not_judged=tuple(sorted(item.scenario for item in part.compared if item.problems)),
    )
