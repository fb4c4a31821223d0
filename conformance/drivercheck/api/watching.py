"""What changed, in order, for those who watch: the events of a ``watch`` request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from conformance.drivercheck.api.objects import Objects
from conformance.targets.base import Obj
from conformance.targets.reference.resources import KINDS

Matches = Callable[[Obj], bool]


@dataclass(frozen=True)
class Change:
    """One event of the log."""

    revision: int
    type: str
    obj: Obj


class Changes:
    """Every change of the store since the start, and who waits for the next one."""

    def __init__(self, objects: Objects) -> None:
        """Listen to the store from now on."""
        self._objects = objects
        self._grown = threading.Condition(objects.lock)
        self._log: list[Change] = []
        self._known: set[str] = {one["metadata"]["uid"] for one in objects.store.everything()}
        self.closed = False
        for kind in KINDS:
            objects.store.listen(kind, self._hear)

    def close(self) -> None:
        """End all watches."""
        with self._grown:
            self.closed = True
            self._grown.notify_all()

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds of the objects; looked at after each change."""
        with self._grown:
            return self._grown.wait_for(condition, seconds)

    def follow(self, kind: str, after: int, seconds: float, matches: Matches) -> Iterator[Change]:
        """Changes of a kind's objects after a revision, as they come, for a time."""
        deadline = time.monotonic() + seconds
        seen = 0
        while True:
            with self._grown:
                while len(self._log) == seen and not self.closed and time.monotonic() < deadline:
                    self._grown.wait(deadline - time.monotonic())
                fresh, seen = self._log[seen:], len(self._log)
                if self.closed or time.monotonic() >= deadline:
                    return
            for change in fresh:
                if change.revision > after and change.obj["kind"] == kind and matches(change.obj):
                    yield change

    def _hear(self, change: str, obj: Obj) -> None:
        uid = obj["metadata"]["uid"]
        if change != "DELETED" and uid not in self._known:
            self._known.add(uid)
            change = "ADDED"
        with self._grown:
            revision = int(obj["metadata"]["resourceVersion"])
            self._log.append(Change(revision, change, obj))
            self._grown.notify_all()
