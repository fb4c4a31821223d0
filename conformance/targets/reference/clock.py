"""Virtual time: nothing in the reference sleeps, and a minute costs nothing.

Time stands still while controllers work and jumps to the next moment at which something is due
(the end of a grace period, of a container, of a retry's delay, or of a wait).
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Seconds since the reference was started, and the moments at which somebody wants to act."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[float] = []

    def wake_in(self, seconds: float) -> float:
        """Ask for time to stop ``seconds`` from now; returns that moment."""
        moment = self.now + seconds
        heapq.heappush(self._due, moment)
        return moment

    def next(self) -> float | None:
        """The next moment somebody asked for, None when nothing is due."""
        while self._due and self._due[0] <= self.now:
            heapq.heappop(self._due)
        return self._due[0] if self._due else None

    def advance(self, moment: float) -> None:
        """Let time pass until ``moment``; never goes back."""
        self.now = max(self.now, moment)

    @staticmethod
    def seconds_of(timestamp: str) -> float:
        """The moment that a timestamp names, in seconds since the reference was started."""
        moment = datetime.fromisoformat(timestamp)
        return (moment.astimezone(UTC) - _EPOCH).total_seconds()

    def timestamp(self, offset: float = 0.0) -> str:
        """The present as ``metav1.Time`` prints it (RFC 3339, whole seconds, UTC)."""
        moment = _EPOCH + timedelta(seconds=int(self.now + offset))
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
