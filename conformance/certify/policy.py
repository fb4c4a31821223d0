"""What somebody asks of a submission beside that it is consistent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from conformance import __version__
from conformance.certify.values import Result
from conformance.certify.verify import Verification
from conformance.compare.conclude import made_up

AHEAD = timedelta(days=1)
"""How far in the future a run may have ended: clocks are not all the same."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is asked.

    Attributes:
        success: every profile is a success, by the scenarios and profiles of this suite.
        compare: every allocation was judged against the reference.
        hardware: nothing was simulated, and devices were seen.
        suite: the run was of this version of the suite and of the very scenarios that it ships.
        max_age: of the run.
    """

    success: bool = False
    compare: bool = False
    hardware: bool = False
    suite: str | None = None
    max_age: timedelta | None = None

    def unmet(self, found: Verification, now: datetime | None = None) -> Iterator[str]:
        """What a submission does not meet, in words; ``now`` is for tests."""
        report = found.report
        if self.success:
            for item in report.profiles:
                if item.result is not Result.SUCCESS:
                    yield f"--require success: {item.name} is {item.result}"
            if found.departures:
                yield (
                    "--require success: its scenarios and profiles are not those of this suite;"
                    f" ask with dra-conformance {report.suite.version} as it was then"
                )
        if self.compare and report.comparison is None:
            yield "--require-compare: no allocation was judged"
        if self.hardware:
            if report.target == "reference" or report.simulated:
                what = "; ".join(report.simulated) or "all of it"
                yield f"--require-hardware: simulated: {what}"
            elif report.driver_profile is not None and made_up(report.driver_profile.document):
                yield "--require-hardware: the driver's devices are made up, as its profile says"
            elif report.inventory is None or not report.inventory.devices:
                yield "--require-hardware: no device of the driver was seen in a snapshot"
        if self.suite is not None:
            if report.suite.version != self.suite:
                yield f"--require-suite {self.suite}: it is of {report.suite.version}"
            elif self.suite != __version__:
                yield f"--require-suite {self.suite}: this is {__version__}; install that version"
            elif found.departures:
                yield f"--require-suite {self.suite}: its scenarios are not those of that version"
        if self.max_age is not None:
            yield from self._aged(report.date, self.max_age, now or datetime.now(UTC))

    def _aged(self, date: str, most: timedelta, now: datetime) -> Iterator[str]:
        try:
            ended = datetime.fromisoformat(date)
        except ValueError:
            yield f"--max-age: {date!r:.40} is no date"
            return
        if ended.tzinfo is None:
            ended = ended.replace(tzinfo=UTC)
        if ended > now + AHEAD:
            yield f"--max-age: the run ended on {date}, which is yet to come"
        elif now - ended > most:
            yield f"--max-age {most.days}: the run ended on {date}, {(now - ended).days} days ago"
