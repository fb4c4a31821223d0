"""Steps that are carried out at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from conformance.engine.context import Context
from conformance.engine.steps import perform
from conformance.scenario.model import Step

Observed = list[dict[str, Any]]


def perform_together(steps: Sequence[Step], context: Context) -> list[Callable[[], Observed]]:
    """Carry out several steps; one alone only when it is asked for.

    Returns:
        For each step what gives what it observed, or raises what `perform` raised.
    """
    if len(steps) == 1:
        return [partial(perform, steps[0], context)]
    ends: list[Future[Observed]] = [Future() for _ in steps]
    context.scope.at_once(
        [partial(_keep, *pair, context) for pair in zip(ends, steps, strict=True)]
    )
    return [end.result for end in ends]


def _keep(end: Future[Observed], step: Step, context: Context) -> None:
    try:
        end.set_result(perform(step, context))
    except Exception as error:  # noqa: BLE001 -- raised again by who asks for the result
        end.set_exception(error)
