"""Which failures are known issues: of Kubernetes, and of no driver and no scenario."""

from __future__ import annotations

from dataclasses import replace

from conformance.results.events.run import RunStarted
from conformance.results.events.scenario import KnownFailure, Outcome, ScenarioFinished
from conformance.scenario.registry import RunningVersions, load_known_issues
from conformance.seam.values import Capabilities


def with_known_issues(
    finished: ScenarioFinished, target: str, versions: RunningVersions
) -> ScenarioFinished:
    """Return the same, with the outcome ``known`` if all that is wrong is a known issue.

    Args:
        target: its name; the reference has none of Kubernetes' issues.
        versions: of Kubernetes' components (`versions_of_kubernetes`).
    """
    failed = finished.outcome is Outcome.FAILED and finished.cleanup is not Outcome.FAILED
    if not failed or target == "reference":
        return finished
    passed = all(step.outcome is Outcome.PASSED for step in finished.steps)
    has_overlap = any(item.namespace == finished.namespace for item in finished.overlaps)
    issues = load_known_issues().match_failure(
        versions, finished.scenario.id, finished.message, passed and has_overlap
    )
    known_failures = tuple(KnownFailure(name, issue.link) for name, issue in issues)
    if not known_failures:
        return finished
    return replace(finished, outcome=Outcome.KNOWN, known_issues=known_failures)


def versions_of_kubernetes(where: Capabilities | RunStarted) -> RunningVersions:
    """Return the versions of the API server, the kubelets and the scheduler."""
    kubelets = where.versions.get("kubelet", "").split(", ")
    scheduler = where.scheduler_version or where.kubernetes_version
    return RunningVersions(frozenset({where.kubernetes_version, *kubelets}), scheduler)
