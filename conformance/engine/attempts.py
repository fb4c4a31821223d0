"""Several attempts at one scenario (``--retries``): which may be made, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.engine.events import Attempt, Outcome, ScenarioFinished
from conformance.engine.setup import Setup


def may_be_chance(finished: ScenarioFinished, setup: Setup) -> bool:
    """Whether it may be tried again: not where what was seen cannot be taken back.

    That is an allocation against the rules, a device in two claims, or something that is left.
    """
    if finished.outcome not in (Outcome.FAILED, Outcome.ERROR) or setup.stop.is_set():
        return False
    told_here = any(item.namespace == finished.namespace for item in finished.overlaps)
    if finished.left or told_here:
        return False
    return setup.compare is None or setup.compare(finished).conformant


def ended_after(finished: ScenarioFinished, attempts: Sequence[Attempt]) -> ScenarioFinished:
    """How a scenario ended after attempts that failed."""
    if not attempts:
        return finished
    passed = finished.outcome is Outcome.PASSED
    before = [f"attempt {n}: {item.message}" for n, item in enumerate(attempts, start=1)]
    return replace(
        finished,
        outcome=Outcome.FLAKY if passed else finished.outcome,
        message="\n".join([f"passed at attempt {len(before) + 1}", *before])
        if passed
        else finished.message,
        where=attempts[-1].where if passed else finished.where,
        attempts=tuple(attempts),
    )
