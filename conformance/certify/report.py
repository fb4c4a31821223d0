"""Turn a result file into a conformance report.

Everything but the implementation's own particulars comes from the result file, so that somebody
else can make the same report from it (``verify``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from conformance.compare.results import RunResult, by_outcome
from conformance.compare.verdicts import Verdict
from conformance.engine.events import Outcome, PlannedScenario
from conformance.errors import UsageError


def build_report(
    result: RunResult,
    implementation: Implementation,
    profiles: Sequence[Profile],
    catalogue: Sequence[PlannedScenario] | None = None,
) -> ConformanceReport:
    """The report on a run.

    Args:
        result: the run, with its footer.
        implementation: what is certified.
        profiles: for what.
        catalogue: every scenario that the suite ships; a scenario of a profile that the run did not
            even plan makes the profile partial. Without it a run of a selection looks whole.

    Raises:
        UsageError: the result file was cut off, or no profile is given.
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
        profiles=tuple(profile_result(result, item, catalogue) for item in profiles),
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
    comparison = _comparison(result.comparison, ids)
    return ProfileResult(
        name=profile.name,
        result=_conclude(profile, outcomes, not_selected, comparison),
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
    profile: Profile,
    outcomes: Mapping[Outcome, Sequence[str]],
    not_selected: Sequence[str],
    comparison: ComparisonSummary | None,
) -> Result:
    """The same order as the exit code: failure, then not known, then partial."""
    if outcomes[Outcome.FAILED] or (comparison is not None and comparison.not_conformant):
        return Result.FAILURE
    if outcomes[Outcome.LOST] or outcomes[Outcome.ERROR]:
        return Result.INCONCLUSIVE
    if comparison is not None and comparison.not_judged:
        return Result.INCONCLUSIVE
    if profile.skips == "partial" and (outcomes[Outcome.SKIPPED] or not_selected):
        return Result.PARTIAL
    if not outcomes[Outcome.PASSED]:
        return Result.INCONCLUSIVE
    return Result.SUCCESS


def _comparison(comparison: Mapping[str, Any] | None, ids: set[str]) -> ComparisonSummary | None:
    """The part of ``Comparison.to_json`` that is about these scenarios."""
    if comparison is None:
        return None
    try:
        scenarios = [item for item in comparison["scenarios"] if item["id"] in ids]
        counts = {
            str(verdict): sum(int(item["counts"].get(verdict, 0)) for item in scenarios)
            for verdict in Verdict
        }
        bad = sorted(
            item["id"]
            for item in scenarios
            if item["verdict"] is not None and not Verdict(item["verdict"]).conformant
        )
        return ComparisonSummary(
            verdicts=counts,
            differences=sum(len(item["differences"]) for item in scenarios),
            not_conformant=tuple(bad),
            not_judged=tuple(sorted(item["id"] for item in scenarios if item["problems"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"the result file's comparison is malformed ({error!r}); use the version of the suite"
            " that wrote it"
        ) from None
