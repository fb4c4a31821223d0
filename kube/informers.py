"""The informers of a scenario and of its target, and how a wait learns of what they report.

Following a kind costs a connection and a thread, so a scenario follows only what its expectations
look at, in its own namespace; what has no namespace is followed once for all scenarios.
"""

from __future__ import annotations

import threading
import time

from kube.api import Resource
from kube.connection import Connection
from kube.informer import Informer
from kube.values import Obj

_Key = tuple[str, str, str]  # group, kind, namespace ("" for all)


class InformerFactory:
    """A set of informers, at most one for each kind and namespace. Safe for threads."""

    def __init__(self, connection: Connection, agent: str = "") -> None:
        self._connection = connection
        self._agent = agent
        self._lock = threading.Lock()
        self._informers: dict[_Key, Informer] = {}

    def find_started(self, resource: Resource, namespace: str | None) -> Informer | None:
        """Return the informer that follows this kind there already, in any of its versions."""
        return self._informers.get(_key(resource, namespace))

    def informer(self, resource: Resource, namespace: str | None) -> Informer:
        """Return the informer for a kind, listed once already. Raises ApiError or TargetError."""
        with self._lock:
            informer = self._informers.get(_key(resource, namespace))
            if informer is None:
                informer = Informer(self._connection, resource, namespace, self._agent)
                informer.start()
                self._informers[_key(resource, namespace)] = informer
            return informer

    def all(self) -> list[Informer]:
        with self._lock:
            return list(self._informers.values())

    def stop(self) -> None:
        with self._lock:
            informers = list(self._informers.values())
            self._informers.clear()
        for informer in informers:
            informer.stop()


def _key(resource: Resource, namespace: str | None) -> _Key:
    return resource.group, resource.kind, (namespace or "") if resource.namespaced else ""


LONGEST = 1.0  # Seconds without a look.


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
                seconds = until - time.monotonic()
                if seconds <= 0:
                    return
                self._condition.wait(seconds)
