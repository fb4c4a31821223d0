"""Turn a result file into a conformance report.

Everything but the implementation's own particulars comes from the result file, so that somebody
else can make the same report from it (``verify``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance import __version__
from conformance.certify.contradictions import EvidenceError, contradictions
from conformance.certify.judging import ComparedRun, read_comparison
from conformance.certify.model import (
    ComparisonSummary,
    ConformanceReport,
    Evidence,
    Implementation,
    ProfileResult,
    Result,
    Skipped,
    Statistics,
    Suite,
)
from conformance.certify.profiles import Profile
from conformance.compare.conclude import conclude
from conformance.compare.judging import Verdict, Witness
from conformance.engine.events import Outcome, PlannedScenario
from conformance.errors import ConformanceError, UsageError
from conformance.resultfile.read import RunResult, by_outcome


class OtherSuiteError(ConformanceError):
    """The run was of another version of the suite, whose scenarios are not known here."""

    def __init__(self, result: RunResult) -> None:
        version = result.run.suite_version
        super().__init__(
            f"{result.where('header')}: the run was of suite {version!r} and this is {__version__},"
            " which has other scenarios and rules, so that nothing can be concluded here; install"
            f" dra-conformance {version} and run this again"
        )


def build_report(
    result: RunResult,
    implementation: Implementation,
    profiles: Sequence[Profile],
    catalogue: Sequence[PlannedScenario] | None = None,
    witness: Witness | None = None,
) -> ConformanceReport:
    """The report on a run.

    Args:
        result: the run, with its footer.
        implementation: what is certified.
        profiles: for what; one that is named twice is there once.
        catalogue: every scenario that the suite ships; a scenario of a profile that the run did not
            even plan makes the profile partial. Without it a run of a selection looks whole.
        witness: who judges the allocations again; None is the reference that the suite ships.

    Raises:
        UsageError: the result file was cut off, or no profile is given.
        OtherSuiteError: a catalogue is given, and the run was of another version of the suite.
        EvidenceError: the result file contradicts itself.
    """
    if catalogue is not None and result.run.suite_version != __version__:
        raise OtherSuiteError(result)
    if found := contradictions(result, witness):
        raise EvidenceError(found)
    return told(result, implementation, profiles, catalogue)


def told(
    result: RunResult,
    implementation: Implementation,
    profiles: Sequence[Profile],
    catalogue: Sequence[PlannedScenario] | None = None,
) -> ConformanceReport:
    """What a result file tells, believed as it stands (:func:`build_report` does not).

    Raises:
        UsageError: the result file was cut off, its comparison is malformed, or no profile is
            given.
    """
    if result.footer is None:
        raise UsageError("the result file has no footer, so there is nothing to certify; run again")
    if not profiles:
        raise UsageError("no profile is given; name one, for example dra-core")
    run = result.run
    return ConformanceReport(
        date=result.footer.finished_at,
        implementation=implementation,
        kubernetes_version=run.kubernetes_version,
        target=run.target,
        driver=run.driver,
        components=dict(sorted(run.versions.items())),
        simulated=run.simulated,
        suite=Suite(version=run.suite_version, scenario_set_digest=run.scenario_set_digest),
        evidence=Evidence(run=run.run, digest=result.digest, interrupted=result.footer.interrupted),
        profiles=tuple(profile_result(result, item, catalogue) for item in dict.fromkeys(profiles)),
    )


def profile_result(
    result: RunResult, profile: Profile, catalogue: Sequence[PlannedScenario] | None
) -> ProfileResult:
    """What one profile came to in a run."""
    planned = [item for item in result.run.planned if profile.has(item)]
    ids = {item.id for item in planned}
    finished = [event for event in result.finished if event.scenario.id in ids]
    outcomes = by_outcome(planned, finished)
    reasons = {event.scenario.id: event.message for event in finished}
    not_selected = sorted(
        item.id for item in catalogue or () if profile.has(item) and item.id not in ids
    )
    comparison = _comparison(result, ids)
    return ProfileResult(
        name=profile.name,
        result=_conclude(result, profile, outcomes, not_selected, comparison),
        statistics=Statistics(**{str(key): len(names) for key, names in outcomes.items()}),
        failed=outcomes[Outcome.FAILED],
        error=outcomes[Outcome.ERROR],
        skipped=tuple(
            Skipped(scenario=name, reason=reasons.get(name, ""))
            for name in outcomes[Outcome.SKIPPED]
        ),
        lost=outcomes[Outcome.LOST],
        not_selected=tuple(not_selected),
        comparison=comparison,
    )


def _conclude(
    result: RunResult,
    profile: Profile,
    outcomes: Mapping[Outcome, Sequence[str]],
    not_selected: Sequence[str],
    comparison: ComparisonSummary | None,
) -> Result:
    """By the rule of the run's own exit code; what ended the run early is about every profile."""
    skips_count = profile.skips == "partial"
    footer = result.footer
    code = conclude(
        outcomes,
        incomplete=skips_count and bool(outcomes[Outcome.SKIPPED] or not_selected),
        against_rules=comparison is not None and bool(comparison.not_conformant),
        not_judged=comparison is not None and bool(comparison.not_judged),
        interrupted=footer is None or footer.interrupted,
        left=() if footer is None else footer.left,
    )
    return next(item for item in Result if item.exit_code is code)


def _comparison(result: RunResult, ids: set[str]) -> ComparisonSummary | None:
    """The part of the comparison that is about these scenarios."""
    if result.comparison is None:
        return None
    try:
        compared: ComparedRun = read_comparison(result.comparison)
    except ValueError as error:
        raise UsageError(
            f"{result.where('comparison')}: {error}; use the version of the suite that wrote it"
        ) from None
    scenarios = [item for item in compared.scenarios if item.id in ids]
    return ComparisonSummary(
        verdicts={
            str(verdict): sum(item.counts.get(verdict, 0) for item in scenarios)
            for verdict in Verdict
        },
        differences=sum(len(item.differences) for item in scenarios),
        not_conformant=tuple(
            sorted(
                item.id
                for item in scenarios
                if item.verdict is not None and not item.verdict.conformant
            )
        ),
        not_judged=tuple(sorted(item.id for item in scenarios if item.problems)),
    )
