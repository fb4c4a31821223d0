"""How a waiting scenario learns that something changed: its watches notify one condition."""

from __future__ import annotations

import threading
import time

from conformance.kubeapi.errors import Obj
from conformance.kubeapi.informer import Informer

LONGEST = 1.0
"""Seconds without a look."""


class Changes:
    """Counts what informers report and lets one thread wait for the next change."""

    def __init__(self) -> None:
        self.informers: tuple[Informer, ...] = ()
        self._condition = threading.Condition()
        self._count = 0
        self._recheck_at: float | None = None

    @property
    def count(self) -> int:
        """How many changes there were; take it before looking, and give it to `wait`."""
        return self._count

    def attach(self, informer: Informer) -> None:
        """Count this informer's changes from now on."""
        if informer not in self.informers:
            self.informers = (*self.informers, informer)
            informer.listen(self._take)
            # Nothing between its first list and now may be missed.
            self.notify()

    def detach(self) -> None:
        """Listen to no informer any more."""
        for informer in self.informers:
            informer.unlisten(self._take)
        self.informers = ()

    def _take(self, _change: str, _obj: Obj) -> None:
        self.notify()

    def notify(self) -> None:
        """Something changed."""
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def recheck_in(self, seconds: float) -> None:
        """End the present `wait` after ``seconds``: for sources without events, such as logs."""
        moment = time.monotonic() + seconds
        with self._condition:
            if self._recheck_at is None or moment < self._recheck_at:
                self._recheck_at = moment

    def wait(self, seen: int, deadline: float) -> None:
        """Return when there were more changes than ``seen``, a recheck is due, or at ``deadline``.

        At the latest after a second, so that a wait can be interrupted (`Scope.wait`).

        Args:
            seen: an earlier `count`.
            deadline: in terms of ``time.monotonic``.
        """
        with self._condition:
            until, self._recheck_at = self._recheck_at, None
            last = min(deadline, time.monotonic() + LONGEST)
            until = last if until is None else min(until, last)
            while self._count == seen:
                left = until - time.monotonic()
                if left <= 0:
                    return
                self._condition.wait(left)
