"""Who acts on the target: so many scenarios at once, not counting those that only look on.

Much of a scenario's time is spent with nothing to do: it sees that something stays as it is for
seconds, or that what it deleted goes. Meanwhile its place is another's. docs/decisions/0035 says
what that changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

PATIENCE = 3.0
"""Seconds that a scenario waits for a place to go on. Then it goes on beside the others, for they
may wait for it: 1.34 schedules no pod with a claim that comes by a pool that is invalid."""


class Phase(Enum):
    """Whether a scenario disturbs components that others need.

    Members:
        BEFORE: not yet.
        WAITING: it would, and waits until nobody is left whom it disturbs.
        DISTURBING: it may at any time.
        CALM: not, or not any more.
    """

    BEFORE = "before"
    WAITING = "waiting"
    DISTURBING = "disturbing"
    CALM = "calm"


class Places:
    """A number of places, and who waits for one.

    Attributes:
        moved: set when a place became free, or a scenario calm.
    """

    def __init__(self, count: int) -> None:
        self.moved = threading.Event()
        self._free = count
        self._returning = 0
        self._changed = threading.Condition()

    def take(self, phase: Phase) -> Place | None:
        """One for a scenario that begins; None while there is none but for those that return."""
        with self._changed:
            if self._free <= self._returning:
                return None
            self._free -= 1
            return Place(self, phase)

    def give(self) -> None:
        """Have one more."""
        with self._changed:
            self._free += 1
            self._changed.notify()
        self.moved.set()

    def take_again(self) -> None:
        """Wait for one, but not for ever; who waits here comes before who begins."""
        with self._changed:
            self._returning += 1
            self._changed.wait_for(lambda: self._free > 0, PATIENCE)
            self._returning -= 1
            self._free -= 1


class Place:
    """One scenario's place, used by its thread.

    Args:
        places: of which it is one; None for a scenario that nobody waits for.
        phase: in which it begins.

    Attributes:
        waited: seconds for which the scenario could have gone on, and might not.
        phase: in which it is.
    """

    def __init__(self, places: Places | None = None, phase: Phase = Phase.CALM) -> None:
        self.waited = 0.0
        self.phase = phase
        self._quiet = threading.Event()
        self._places = places
        self._taken = True

    def leave(self) -> None:
        """Until it comes back; once is enough."""
        if self._places is not None and self._taken:
            self._taken = False
            self._places.give()

    def disturb(self) -> None:
        """Wait until all have ended whom the scenario disturbs, which it does from now on."""
        if self.phase is not Phase.BEFORE or self._places is None:
            return
        self.phase = Phase.WAITING
        self._places.moved.set()
        with self.left():
            begin = time.perf_counter()
            self._quiet.wait()
            self.waited += time.perf_counter() - begin

    def let_disturb(self) -> None:
        """End that wait."""
        self.phase = Phase.DISTURBING
        self._quiet.set()

    def calm_down(self) -> None:
        """Say that the scenario disturbs nothing from now on."""
        self.phase = Phase.CALM
        if self._places is not None:
            self._places.moved.set()

    def come_back(self) -> None:
        """Wait for a place again, after it was left."""
        if self._places is not None and not self._taken:
            begin = time.perf_counter()
            self._places.take_again()
            self._taken = True
            self.waited += time.perf_counter() - begin

    @contextmanager
    def left(self) -> Iterator[None]:
        """While the scenario only looks on."""
        self.leave()
        try:
            yield
        finally:
            self.come_back()
