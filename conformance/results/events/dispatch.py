"""Hands events to reporters; one that fails must never cost the run its cleanup.

Order of a run: one RunStarted; for each scenario, and again for each attempt at it,
ScenarioStarted, then StepStarted / StepFinished pairs, Diagnostics (on failure, before the
cleanup), ScenarioCompared (with ``--compare``), ScenarioFinished; one RunFinished. Events of
scenarios that run in parallel interleave; each names its scenario. RunStopping may come anywhere
between, and more than once.

A full disk or a closed pipe makes a reporter raise in the middle of a run. It is not called again,
and the run is asked to stop: a run whose evidence is lost is not worth its time. Other reporters
get all events to the end.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.run import RunFinished, RunStarted, RunStopping
from conformance.results.events.scenario import (
    Diagnostics,
    ScenarioFinished,
    ScenarioStarted,
    StepFinished,
    StepStarted,
)
from kube.base.errors import ConformanceError, InfrastructureError

Event = (
    RunStarted
    | ScenarioStarted
    | StepStarted
    | StepFinished
    | Diagnostics
    | ScenarioCompared
    | ScenarioFinished
    | RunStopping
    | RunFinished
)


class Reporter(Protocol):
    """Receives every event, one at a time.

    ``str`` of a reporter names it in messages, for example ``the result file out/results.ndjson``.
    """

    def handle(self, event: Event) -> None:
        """Take note of one event; whatever this raises ends the run early."""


class ReportError(InfrastructureError):
    """A reporter failed: what the run found was not written down, or not shown, in full."""


class Dispatcher:
    """Hands each event to each reporter, one event at a time. Safe for threads.

    Args:
        reporters: those that fail are left out from then on.
        stop: set when the first one fails.
    """

    def __init__(self, reporters: Sequence[Reporter], stop: threading.Event) -> None:
        self._reporters = list(reporters)
        self._stop = stop
        self._lock = threading.Lock()
        self._causes: list[BaseException] = []
        self._failures: list[str] = []

    def dispatch(self, event: Event) -> None:
        """Hand an event to every reporter that has not failed; raises nothing of theirs."""
        with self._lock:
            self._dispatch(event)

    def check(self, remark: str = "") -> None:
        """Raise if a reporter has failed.

        ``remark``: what became of the run, for the message.

        Raises:
            ReportError: naming each reporter and why it failed.
            ConformanceError: what the first of them raised, if that is meant for the user and it is
                the only one.
        """
        if not self._failures:
            return
        first = self._causes[0]
        if len(self._causes) == 1 and not remark and isinstance(first, ConformanceError):
            raise first
        raise ReportError("; ".join([*self._failures, remark] if remark else self._failures)) from (
            first
        )

    def _dispatch(self, event: Event) -> None:
        failed = []
        for reporter in list(self._reporters):
            try:
                reporter.handle(event)
            except (Exception, SystemExit) as error:  # noqa: BLE001 -- rich exits at a closed pipe
                self._reporters.remove(reporter)
                self._causes.append(error)
                failed.append(f"{_name(reporter)} failed: {_reason(error)}")
        if failed:
            self._failures += failed
            self._stop.set()
            self._dispatch(RunStopping("; ".join(failed)))


def _name(reporter: Reporter) -> str:
    described = type(reporter).__str__ is not object.__str__
    return str(reporter) if described else type(reporter).__name__


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, ConformanceError):
        return str(error)
    if isinstance(error, SystemExit):
        return "its output was closed"
    return f"{type(error).__name__}: {error}"
