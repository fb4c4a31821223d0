"""How a scenario ended: what its steps raise, the first problem, and what attempts come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from conformance.engine.setup import Setup
from conformance.results.events.scenario import Attempt, Outcome, ScenarioFinished
from kube.base.errors import ConformanceError
from kube.errors import ApiError


class Divergence(AssertionError):  # noqa: N818 -- it is a finding about the target, not an error
    """The target did not do what the scenario says, which fails the scenario."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}; found {found}")
        self.expected = expected
        self.found = found


class Interrupted(Exception):  # noqa: N818 -- what the user wants, not an error
    """The run must end; the scenario is cleaned up and counts as lost."""


class Ending:
    """How a scenario has gone so far.

    Args:
        where: the scenario, as ``file:line``.

    Attributes:
        outcome: passed until something goes wrong.
        message: the first problem, with what belongs to it.
        where: of the first problem, as ``file:line``.
        latest: outcome and message of the last problem.
    """

    def __init__(self, where: str = "") -> None:
        self.outcome = Outcome.PASSED
        self.message = ""
        self.where = where
        self.latest = (self.outcome, self.message)

    @property
    def well(self) -> bool:
        return self.outcome is Outcome.PASSED

    def note(self, outcome: Outcome, message: str, where: str = "") -> None:
        self.latest = (outcome, message)
        if self.well:
            self.outcome, self.message, self.where = outcome, message, where or self.where

    def excuse(self, reasons: Iterable[str]) -> None:
        """Take a failure for an error, if something else than the target may have caused it."""
        if explanation := "; ".join(dict.fromkeys(reasons)):
            self.outcome = Outcome.ERROR
            self.message = f"not judged: {explanation}\n{self.message}"

    def blame(self, message: str) -> None:
        """Fail, also where it was taken for an error that the target broke; this is why."""
        if self.outcome is Outcome.ERROR:
            self.outcome = Outcome.FAILED
            self.add(message)
        elif self.well:
            self.note(Outcome.FAILED, message)
        else:
            self.add(message)

    def add(self, message: str) -> None:
        self.message += f"\n{message}"


def is_known(error: Exception) -> bool:
    """Whether an error is one that steps are expected to raise, and no bug of the suite."""
    return isinstance(error, Divergence | ApiError | Interrupted | ConformanceError)


def ended_by(error: Exception) -> tuple[Outcome, str]:
    """The outcome and message of a scenario whose step raised an error."""
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


def may_be_chance(finished: ScenarioFinished, setup: Setup) -> bool:
    """Whether a failure may be retried.

    Not an allocation against the rules, a device in two claims, something that is left behind, or
    without the driver.
    """
    if finished.outcome not in (Outcome.FAILED, Outcome.ERROR) or setup.stop.is_set():
        return False
    if setup.lost:
        return False
    told_here = any(item.namespace == finished.namespace for item in finished.overlaps)
    if finished.left or told_here:
        return False
    return setup.compare is None or setup.compare(finished).conformant


def new_attempt(finished: ScenarioFinished) -> Attempt:
    """Return what is kept of an attempt when there is another one after it."""
    return Attempt(finished.outcome, finished.message, finished.where, finished.seconds)


def ended_after(finished: ScenarioFinished, attempts: Sequence[Attempt]) -> ScenarioFinished:
    if not attempts:
        return finished
    passed = finished.outcome is Outcome.PASSED
    attempt_messages = [f"attempt {n}: {item.message}" for n, item in enumerate(attempts, start=1)]
    return replace(
        finished,
        outcome=Outcome.FLAKY if passed else finished.outcome,
        message="\n".join([f"passed at attempt {len(attempt_messages) + 1}", *attempt_messages])
        if passed
        else finished.message,
        where=attempts[-1].where if passed else finished.where,
        attempts=tuple(attempts),
    )
