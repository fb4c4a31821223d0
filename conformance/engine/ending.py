"""What a scenario comes to: the first thing that went wrong."""

from __future__ import annotations

from conformance.engine.awaiting import Divergence
from conformance.engine.context import Interrupted
from conformance.engine.events import Outcome
from conformance.errors import ConformanceError
from conformance.targets.base import ApiError


class Ending:
    """How a scenario has gone so far.

    Args:
        where: the scenario, as ``file:line``.

    Attributes:
        outcome: passed until something goes wrong.
        message: what went wrong first, with what belongs to it.
        where: and where, as ``file:line``.
        latest: outcome and message of what went wrong last.
    """

    def __init__(self, where: str) -> None:
        self.outcome = Outcome.PASSED
        self.message = ""
        self.where = where
        self.latest = (self.outcome, self.message)

    @property
    def well(self) -> bool:
        """Whether nothing has gone wrong."""
        return self.outcome is Outcome.PASSED

    def note(self, outcome: Outcome, message: str, where: str = "") -> None:
        """Note that something went wrong."""
        self.latest = (outcome, message)
        if self.well:
            self.outcome, self.message, self.where = outcome, message, where or self.where

    def add(self, message: str) -> None:
        """Say more of what went wrong."""
        self.message += f"\n{message}"


def is_known(error: Exception) -> bool:
    """Whether an error is one that steps are expected to raise, and no bug of the suite."""
    return isinstance(error, Divergence | ApiError | Interrupted | ConformanceError)


def ended_by(error: Exception) -> tuple[Outcome, str]:
    """What a scenario comes to by an error of a step, and what is said of it."""
    match error:
        case Divergence():
            return Outcome.FAILED, str(error)
        case ApiError():
            text = f"the API server refused: {error.code} {error.reason}: {error.message}"
            return Outcome.FAILED, text
        case Interrupted():
            return Outcome.LOST, "the run was interrupted"
        case ConformanceError():
            return Outcome.ERROR, str(error)
    return Outcome.ERROR, f"the suite failed: {type(error).__name__}: {error}"
