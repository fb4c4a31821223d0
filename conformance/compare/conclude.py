"""What a run comes to: one exit code, by rules that nobody has to guess.

A failure stands whatever else happened. Without one, what is not known (lost, broken, interrupted,
not judged) keeps the answer open; a core scenario that was skipped makes it partial, so that nobody
is conformant by skipping. "Nothing failed" alone is no success: something must have passed.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.compare.compare import Comparison
from conformance.compare.results import by_outcome
from conformance.engine.events import Outcome, PlannedScenario, ScenarioFinished
from conformance.errors import ExitCode


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
    outcomes = by_outcome(planned, finished)
    if outcomes[Outcome.FAILED] or (comparison is not None and not comparison.conformant):
        return ExitCode.NOT_CONFORMANT
    unknown = outcomes[Outcome.LOST] or outcomes[Outcome.ERROR] or interrupted or left
    if unknown or (comparison is not None and comparison.problems):
        return ExitCode.INCONCLUSIVE
    core = {item.id for item in planned if item.level == "core"}
    if core.intersection(outcomes[Outcome.SKIPPED]):
        return ExitCode.PARTIAL
    if not outcomes[Outcome.PASSED]:
        return ExitCode.INCONCLUSIVE
    return ExitCode.CONFORMANT
