"""Virtual time: nothing in the reference sleeps, and a minute costs nothing.

Time stands still while controllers work and jumps to the next moment at which something is due
(the end of a grace period, of a container, of a retry's delay, or of a wait).
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Seconds since `EPOCH`, and the moments at which somebody wants to act.

    Attributes:
        moments_passed: how many of these moments have come.
    """

    def __init__(self, start: float = 0.0) -> None:
        """Begin at ``start`` seconds after `EPOCH`."""
        self.now = start
        self.moments_passed = 0
        self._due: list[float] = []

    def wake_in(self, seconds: float) -> float:
        """Ask for time to stop ``seconds`` from now; returns that moment."""
        moment = self.now + seconds
        heapq.heappush(self._due, moment)
        return moment

    def next_moment(self) -> float | None:
        """Return the next moment somebody asked for, None when nothing is due."""
        self._drop_past_moments()
        return self._due[0] if self._due else None

    def advance(self, moment: float) -> None:
        """Let time pass until ``moment``; never goes back."""
        self.now = max(self.now, moment)
        self._drop_past_moments()

    def _drop_past_moments(self) -> None:
        # Several may ask for one moment, and time may jump over it: it is due once.
        while self._due and self._due[0] <= self.now:
            heapq.heappop(self._due)
            self.moments_passed += 1

    @staticmethod
    def seconds_of(timestamp: str) -> float:
        """Return the moment that a timestamp names, in seconds since `EPOCH`."""
        moment = datetime.fromisoformat(timestamp)
        return (moment.astimezone(UTC) - EPOCH).total_seconds()

    def format_timestamp(self, offset: float = 0.0) -> str:
        """Return the present as ``metav1.Time`` prints it (RFC 3339, whole seconds, UTC)."""
        moment = EPOCH + timedelta(seconds=int(self.now + offset))
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
