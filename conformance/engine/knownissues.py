"""Tell a failure that is a known issue of the target's Kubernetes from one that is not."""

from __future__ import annotations

from dataclasses import replace

from conformance.engine.events import KnownFailure, Outcome, ScenarioFinished
from conformance.scenario.knownissues import load_known_issues


def with_known_issues(finished: ScenarioFinished, target: str, version: str) -> ScenarioFinished:
    """The same, with the outcome ``known`` where all that is wrong is a known issue.

    Args:
        finished: how the scenario ended.
        target: its name; the reference is no Kubernetes and has none of its issues.
        version: of the API server.
    """
    if finished.outcome is not Outcome.FAILED or finished.cleanup is Outcome.FAILED:
        return finished
    if target == "reference":
        return finished
    passed = all(step.outcome is Outcome.PASSED for step in finished.steps)
    told = any(item.namespace == finished.namespace for item in finished.overlaps)
    issues = load_known_issues().of(
        version, finished.scenario.id, finished.message, passed and told
    )
    found = tuple(KnownFailure(name, issue.link) for name, issue in issues)
    if not found:
        return finished
    return replace(finished, outcome=Outcome.KNOWN, known_issues=found)
