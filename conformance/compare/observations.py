"""Compare what one scenario observed on two targets.

Observations are canonical JSON without uids, times and generated names, so equal behaviour gives
equal values.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.engine.events import Outcome, ScenarioFinished, StepFinished
from conformance.engine.verdicts import Difference
from conformance.jsondiff import differences, json_text

MAX_DIFFERENCES = 100
"""The most that are kept of one scenario."""


def compare_observations(
    target: ScenarioFinished, reference: ScenarioFinished
) -> tuple[Difference, ...]:
    """Where a scenario's outcome or observations differ, in the order of its steps.

    A scenario that was skipped or lost on either side was not observed there, and is not compared.
    Steps that one side did not reach follow from the outcome and are not listed one by one.
    """
    if not observed(target) or not observed(reference):
        return ()
    found: list[Difference] = []
    if target.outcome is not reference.outcome:
        found.append(Difference(None, "outcome", "$", str(target.outcome), str(reference.outcome)))
    for left, right in zip(target.steps, reference.steps, strict=False):
        found.extend(_step(left, right))
        if len(found) >= MAX_DIFFERENCES:
            break
    return tuple(found[:MAX_DIFFERENCES])


def observed(finished: ScenarioFinished) -> bool:
    """Whether the scenario ran, so that there is something to compare."""
    return finished.outcome not in (Outcome.SKIPPED, Outcome.LOST)


def _step(target: StepFinished, reference: StepFinished) -> Iterator[Difference]:
    title = reference.title
    if target.title != title:
        yield Difference(target.index, title, "title", json_text(target.title), json_text(title))
    pairs = differences([*target.observed], [*reference.observed])
    for path, left, right in pairs:
        yield Difference(target.index, title, path, json_text(left), json_text(right))
