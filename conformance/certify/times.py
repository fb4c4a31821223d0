"""Whether the times in a result file can be those of one run.

Each time is held against the others, so that an old run does not become a young one by one field
(``verify --max-age``). Whoever shifts all of them gets a file that is consistent again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from conformance.certify.codes import Finding
from conformance.results.events.run import RunFinished
from conformance.results.events.scenario import ScenarioFinished
from conformance.results.read import RecordedRun
from conformance.results.times import end_of, parse_time

CLOCK_SKEW: Final = timedelta(days=1)
"""How far clocks of different machines may be apart: whoever verifies, the run, its cluster."""

SLACK: Final = timedelta(minutes=1)
"""How far clocks of one run may be apart: the clock of its machine is set while it runs, and header
and footer have whole seconds."""

AFTER_THE_LAST: Final = timedelta(minutes=10)
"""The longest time from the end of the last scenario to the end of the run, in which classes are
removed (``engine.suite.CLASSES_GONE``) and the run looks for what it left."""

ROUNDING: Final = 0.001
"""Seconds by which a step may be longer than its scenario, as both are rounded."""


class TimeCheck:
    """The times of one result file.

    Args:
        result: the file; what has no footer has no end, and is not checked.
        now: when it is checked; what is later than that by more than `CLOCK_SKEW` is refused.
    """

    def __init__(self, result: RecordedRun, now: datetime | None = None) -> None:
        self._result = result
        self._now = now or datetime.now(UTC)
        self._span: tuple[datetime, datetime] | None = None

    def of_run(self) -> Iterator[Finding]:
        """Yield what is wrong with the times in header and footer; call it before `of_scenario`."""
        footer = self._result.footer
        if footer is None:
            return
        try:
            begin = parse_time(self._result.run.started_at)
            end = parse_time(footer.finished_at)
        except ValueError as error:
            yield "times", f"of the run: {error}"
            return
        if end > self._now + CLOCK_SKEW:
            yield "times", f"the run ended on {footer.finished_at}, which is in the future"
        if end < begin:
            text = f"the run ended on {footer.finished_at}, before it began, on"
            yield "times", f"{text} {self._result.run.started_at}"
            return
        self._span = begin, end
        yield from self._length(footer, end - begin)
        yield from self._last(footer, end)

    def _length(self, footer: RunFinished, span: timedelta) -> Iterator[Finding]:
        """Check that the seconds of the footer are those between the times of header and footer."""
        took = timedelta(seconds=min(footer.seconds, timedelta.max.total_seconds() / 2))
        # Between a run and what resumes it nothing runs, however long that is.
        paused = bool(self._result.run.resumed)
        if took > span + SLACK or (took < span - SLACK and not paused):
            text = f"the run took {footer.seconds:g} s, and there are {span.total_seconds():g} s"
            yield "times", f"{text} between its beginning and its end"

    def _last(self, footer: RunFinished, end: datetime) -> Iterator[Finding]:
        ends = []
        for event in self._result.finished:
            try:
                ends.append(end_of(event.started_at, event.seconds))
            except ValueError:
                continue  # one that never began has no time; a wrong one is reported where it is
        if ends and end > max(ends) + AFTER_THE_LAST:
            text = f"the run ended on {footer.finished_at}, its last scenario on"
            yield "times", f"{text} {max(ends).isoformat(timespec='seconds')}"

    def of_scenario(self, event: ScenarioFinished) -> Iterator[Finding]:
        """Yield what is wrong with the times of a scenario and its steps."""
        for step in event.steps:  # some run side by side, so that their sum says nothing
            if step.seconds > event.seconds + ROUNDING:
                yield "times", f"took {event.seconds:g} s, its step {step.index} {step.seconds:g} s"
        if not event.started_at:
            if event.steps:
                yield "times", "has steps, and no time at which it began"
            return
        try:
            began, ended = parse_time(event.started_at), end_of(event.started_at, event.seconds)
        except ValueError as error:
            yield "times", str(error)
            return
        if self._span is None:
            return
        begin, end = self._span
        earlier = timedelta(seconds=sum(item.seconds for item in event.attempts))
        if began - earlier < begin - SLACK or ended > end + SLACK:
            text = f"ran from {event.started_at} for {event.seconds:g} s, the run from"
            yield "times", f"{text} {begin.isoformat()} to {end.isoformat()}"
        yield from self._creations(event)

    def _creations(self, event: ScenarioFinished) -> Iterator[Finding]:
        """Check that claims of its allocations were created in the run, by the API server's clock.

        ``creationTimestamp`` is the one time in them that no client can choose. The clock of the
        reference is virtual, and begins when it likes.
        """
        if self._span is None or self._result.run.target == "reference":
            return
        begin, end = self._span
        for text in sorted({*_creation_times(event)}):
            try:
                created = parse_time(text)
            except ValueError as error:
                yield "times", f"creationTimestamp: {error}"
                continue
            if not begin - CLOCK_SKEW <= created <= end + CLOCK_SKEW:
                yield "times", f"a claim was created on {text}, more than a day from the run"


def _creation_times(event: ScenarioFinished) -> Iterator[str]:
    for decision in event.decisions:
        try:
            times = [claim["metadata"].get("creationTimestamp") for claim in decision["claims"]]
        except (AttributeError, KeyError, TypeError):
            continue  # a decision of another form is reported where it is judged
        yield from (time for time in times if isinstance(time, str))
