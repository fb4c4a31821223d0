"""Churn, round by round.

Each round is short, begins and ends with nothing, and has a seed of its own, so that a failure
after an hour is repeated in seconds.
"""

from __future__ import annotations

import time
from math import ceil
from typing import Any

from conformance.engine.awaiting import Divergence
from conformance.engine.churn.finding import Again, divergence_of
from conformance.engine.churn.operations import operations
from conformance.engine.churn.round import play
from conformance.engine.context import Context, Interrupted
from conformance.errors import TargetError
from conformance.scenario.churn import Churn


def churn(step: Churn, context: Context, again: Again) -> dict[str, Any]:
    """Carry out the step.

    Returns:
        The first seed, how many rounds it were, and of long churn how many operations: there was
        time for more of them on a faster target, and long churn is not compared with another one.

    Raises:
        Divergence: an invariant does not hold.
        TargetError: a watch was interrupted in every round, so nothing can be said.
    """
    budget, first = context.churn_seconds or step.time, context.churn_seed or step.seed
    spent = 0.0  # without what it takes to shrink
    rounds = judged = done = 0
    broken: list[str] = []
    divergence: Divergence | None = None
    while rounds < ceil(budget / step.time) and spent < budget:
        dealt, began = operations(step, first + rounds), time.monotonic()
        try:
            found = play(step, context, dealt, patient=True)
        except Interrupted:
            if divergence is None:
                raise
            break  # what was found is told
        spent += time.monotonic() - began
        rounds, done, judged = rounds + 1, done + found.done, judged + found.judged
        if found.violation is not None and found.judged:
            seed, dealt = first + rounds - 1, dealt[: found.done]
            broken.append(f"{found.violation.rule} with seed {seed}")
            divergence = divergence or divergence_of(step, context, again, seed, dealt, found)
    if divergence is not None:
        told = f"in {rounds} rounds of {done} operations: {', '.join(broken)}"
        raise Divergence(divergence.expected, f"{divergence.found}\n{told}")
    if not judged:
        raise TargetError("the watches of pods and claims were interrupted in every round of churn")
    observed = {"seed": first, "rounds": rounds}
    if context.churn_seconds:
        observed["operations"] = done
    return observed if judged == rounds else observed | {"notJudged": rounds - judged}
