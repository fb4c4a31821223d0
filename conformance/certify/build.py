"""Turn a result file into a conformance report.

Everything but the implementation's own particulars comes from the result file, so that somebody
else can make the same report from it (``verify``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance import __version__
from conformance.certify.contradictions import EvidenceError, contradictions
from conformance.certify.inventory import inventory
from conformance.certify.model import (
    ConformanceReport,
    FeatureResult,
    MetIssue,
    ProfileResult,
    Support,
)
from conformance.certify.profiles import Profile
from conformance.certify.values import (
    ComparisonSummary,
    Evidence,
    Implementation,
    Known,
    Result,
    Skipped,
    Statistics,
    Suite,
    UsedProfile,
)
from conformance.compare.conclude import conclude, uncertified
from conformance.engine.events.result import RunResult
from conformance.engine.events.run import RunStarted
from conformance.engine.events.scenario import Outcome, PlannedScenario
from conformance.engine.requirements import is_in
from conformance.errors import ConformanceError, UsageError
from conformance.resultfile.read import RecordedRun
from conformance.scenario.registry import load_registry
from reference_allocator.gates import gates_for_version, nearest_minor


def claimed(run: RunStarted) -> frozenset[str]:
    """The features that the driver profile of a run claims beside the core."""
    spec = (run.driver_profile or {}).get("spec")
    names = spec.get("claims") if isinstance(spec, Mapping) else None
    return frozenset(map(str, names)) if isinstance(names, list | tuple) else frozenset()


def feature_results(
    result: RunResult, catalogue: Sequence[PlannedScenario]
) -> tuple[FeatureResult, ...]:
    """Each feature of which the suite has a scenario for this Kubernetes, in the order of names.

    A claimed feature (``claims`` of the driver profile) that is not shown to work has failed; one
    that is not claimed and whose scenarios were all skipped is unsupported, which is no failure.
    Nobody is excused from the core.

    ``catalogue``: every scenario that the suite ships; provisional ones count for nothing.
    """
    version = result.run.kubernetes_version
    by_feature: dict[str, list[PlannedScenario]] = {}
    for item in catalogue:
        if not item.provisional and is_in(version, item.kubernetes):
            by_feature.setdefault(item.feature, []).append(item)
    outcomes = {
        row.scenario.id: Outcome.FAILED if row.against_rules else row.outcome
        for row in result.scenarios
    }
    claims = claimed(result.run)
    return tuple(
        _feature(name, by_feature[name], outcomes, name in claims, version)
        for name in sorted(by_feature)
    )


def _feature(
    name: str,
    scenarios: Sequence[PlannedScenario],
    outcomes: Mapping[str, Outcome],
    claims: bool,
    version: str,
) -> FeatureResult:
    known = load_registry().features.get(name)
    gates = gates_for_version(nearest_minor(version))
    gate = gates.get(known.gate) if known is not None and known.gate is not None else None

    def ended(*wanted: Outcome | None) -> tuple[str, ...]:
        return tuple(sorted(i.id for i in scenarios if outcomes.get(i.id) in wanted))

    passed, failed, skipped = (
        ended(outcome) for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED)
    )
    missing = ended(None, Outcome.LOST, Outcome.ERROR, Outcome.FLAKY)
    core = {item.id for item in scenarios if item.level == "core"}
    if failed or (claims and skipped):
        support = Support.FAILED
    elif missing or core.intersection(skipped):
        support = Support.NOT_TESTED
    elif passed:
        support = Support.SUPPORTED
    else:
        support = Support.UNSUPPORTED if skipped else Support.NOT_TESTED
    return FeatureResult(
        name=name,
        summary=known.summary if known is not None else "",
        kep=known.kep if known is not None else "",
        stage=gate.stage if gate is not None else None,
        claimed=claims,
        support=support,
        passed=passed,
        failed=failed,
        known=ended(Outcome.KNOWN),
        skipped=skipped,
        not_tested=missing,
    )


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
) -> ConformanceReport:
    """The report on a run.

    Args:
        profiles: what to certify for; one that is given twice is reported once.
        catalogue: every scenario that the suite ships. One of a profile that the run did not even
            plan makes the profile partial; others that the run had count for no profile.

    Raises:
        UsageError: the result file was cut off.
        OtherSuiteError: the run was of another version of the suite.
        EvidenceError: the result file contradicts itself.
    """
    if result.run.suite_version != __version__:
        raise OtherSuiteError(result)
    if found := contradictions(result, catalogue):
        raise EvidenceError(found)
    return believed(result, implementation, profiles, catalogue)


def believed(
    result: RecordedRun,
    implementation: Implementation,
    profiles: Sequence[Profile],
    catalogue: Sequence[PlannedScenario],
) -> ConformanceReport:
    """The report on a run whose result file is believed as it stands. Raises UsageError."""
    if result.footer is None:
        raise UsageError("the result file has no footer, so there is nothing to certify; run again")
    run = result.run
    return ConformanceReport(
        date=result.footer.finished_at,
        implementation=implementation,
        kubernetes_version=run.kubernetes_version,
        target=run.target,
        driver=run.driver,
        driver_profile=_used_profile(run),
        feature_gates=dict(sorted(run.feature_gates.items())),
        components=dict(sorted(run.versions.items())),
        inventory=inventory(result),
        simulated=run.simulated,
        suite=Suite(version=run.suite_version, scenario_set_digest=run.scenario_set_digest),
        evidence=Evidence(run=run.run, digest=result.digest, interrupted=result.interrupted),
        uncertified=uncertified(result),
        comparison=_comparison(result) if run.compared else None,
        known_issues=tuple(
            MetIssue(name=issue.name, link=issue.link, scenarios=names)
            for issue, names in result.known_issues.items()
        ),
        profiles=tuple(profile_result(result, item, catalogue) for item in dict.fromkeys(profiles)),
        features=feature_results(result, catalogue),
    )


def others(result: RunResult, catalogue: Sequence[PlannedScenario]) -> list[str]:
    """Ids of the run's scenarios that the suite does not ship; they count for no profile."""
    shipped = {item.id for item in catalogue}
    return sorted(item.id for item in result.run.planned if item.id not in shipped)


def profile_result(
    result: RunResult, profile: Profile, catalogue: Sequence[PlannedScenario]
) -> ProfileResult:
    """What one profile came to in a run: of its scenarios, those of the cluster's Kubernetes."""
    version = result.run.kubernetes_version
    wanted = {
        item.id for item in catalogue if profile.has(item) and is_in(version, item.kubernetes)
    }
    part = _restricted(result, wanted)
    outcomes = part.outcomes
    reasons = {event.scenario.id: event.message for event in part.finished}
    not_selected = sorted(wanted - {item.id for item in part.run.planned})
    strict = profile.skips == "partial"
    conclusion = conclude(
        part,
        skipped=outcomes[Outcome.SKIPPED] if strict else (),
        not_selected=not_selected if strict else (),
    )
    unproven = sorted(
        item.id
        for item in part.run.planned
        if item.feature in claimed(result.run) and item.id in outcomes[Outcome.SKIPPED]
    )
    verdict = Result.FAILURE if unproven else Result.of(conclusion.code)
    if verdict is Result.SUCCESS and uncertified(result):
        verdict = Result.UNCERTIFIED
    return ProfileResult(
        name=profile.name,
        result=verdict,
        statistics=Statistics(**{str(key): len(names) for key, names in outcomes.items()}),
        failed=outcomes[Outcome.FAILED],
        known=tuple(
            Known(scenario=name, issue=issue.name, link=issue.link)
            for issue, names in part.known_issues.items()
            for name in names
        ),
        error=outcomes[Outcome.ERROR],
        skipped=tuple(
            Skipped(scenario=name, reason=reasons.get(name, ""))
            for name in outcomes[Outcome.SKIPPED]
        ),
        lost=outcomes[Outcome.LOST],
        not_selected=tuple(not_selected),
        unproven=tuple(unproven),
        comparison=_comparison(part) if part.run.compared else None,
    )


def _restricted(result: RunResult, ids: set[str]) -> RunResult:
    """The part of a run that is about these scenarios."""
    return RunResult(
        run=replace(
            result.run, planned=tuple(item for item in result.run.planned if item.id in ids)
        ),
        finished=tuple(event for event in result.finished if event.scenario.id in ids),
        compared=tuple(item for item in result.compared if item.scenario in ids),
        footer=result.footer,
    )


def _used_profile(run: RunStarted) -> UsedProfile | None:
    """The driver profile, with name and digest."""
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
