"""What a run comes to: one exit code, by rules that nobody has to guess.

A failure stands whatever else happened. Without one, what is not known (lost, broken, interrupted,
not judged) keeps the answer open; a core scenario that was skipped makes it partial, so that nobody
is conformant by skipping. "Nothing failed" alone is no success: something must have passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.compare.compare import Comparison
from conformance.engine.events import Outcome, PlannedScenario, ScenarioFinished
from conformance.errors import ExitCode
from conformance.resultfile.read import by_outcome


def exit_code(
    planned: Sequence[PlannedScenario],
    finished: Sequence[ScenarioFinished],
    comparison: Comparison | None = None,
    *,
    interrupted: bool = False,
    left: Sequence[str] = (),
) -> ExitCode:
    """The exit code of a run.

    Args:
        planned: what was to run.
        finished: what ended; the rest is lost.
        comparison: with the reference, where one was asked for.
        interrupted: the run was broken off.
        left: what the whole run's cleanup could not remove.
    """
    core = {item.id for item in planned if item.level == "core"}
    outcomes = by_outcome(planned, finished)
    return conclude(
        outcomes,
        incomplete=bool(core.intersection(outcomes[Outcome.SKIPPED])),
        against_rules=comparison is not None and not comparison.conformant,
        not_judged=comparison is not None and bool(comparison.problems),
        interrupted=interrupted,
        left=left,
    )


def conclude(
    outcomes: Mapping[Outcome, Sequence[str]],
    *,
    incomplete: bool,
    against_rules: bool,
    not_judged: bool,
    interrupted: bool,
    left: Sequence[str],
) -> ExitCode:
    """The one rule for runs and for conformance reports.

    Args:
        outcomes: as ``by_outcome`` gives them.
        incomplete: something that counts was skipped, or not even selected.
        against_rules: an allocation broke a rule.
        not_judged: an allocation could not be judged.
        interrupted: the run was broken off.
        left: what the whole run's cleanup could not remove.
    """
    if outcomes[Outcome.FAILED] or against_rules:
        return ExitCode.NOT_CONFORMANT
    unknown = outcomes[Outcome.LOST] or outcomes[Outcome.ERROR] or interrupted or left
    if unknown or not_judged:
        return ExitCode.INCONCLUSIVE
    if incomplete:
        return ExitCode.PARTIAL
    if not outcomes[Outcome.PASSED]:
        return ExitCode.INCONCLUSIVE
    return ExitCode.CONFORMANT
