"""What a front serves: an API server's objects, their history, and who may change them when."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver.handling import Handler
from kubesim.apiserver.server import ApiServer
from kubesim.apiserver.watches import Matches, as_seen
from kubesim.cluster import Cluster
from kubesim.front.call import Call
from kubesim.front.encoded import EncodedObjects
from kubesim.resources import KINDS
from kubesim.store import Store, name_of, namespace_of, uid_of

CAPACITY: Final = 10_000  # Events that are kept.


@dataclass(frozen=True, slots=True)
class Event:
    """One change.

    Attributes:
        obj: the object after it, or as it was last, with the resourceVersion of the change.
        old: the object before it; None where there was none.
    """

    type: str
    obj: Obj
    old: Obj | None

    @property
    def revision(self) -> int:
        """The revision of the store after the change."""
        return int(self.obj["metadata"]["resourceVersion"])

    def as_watch_event(self, kind: str, selects: Matches) -> tuple[str, Obj] | None:
        """Return the event as a watch of some objects has it; None: it has none of it."""
        if self.obj["kind"] != kind:
            return None
        selected_before = self.old if self.old is not None and selects(self.old) else None
        return as_seen(self.type, self.obj, selected_before, selects)


class FellBehindError(Exception):
    """Events that a watch has not had yet are forgotten."""


class History:
    """Events of a store since this was made.

    As the watch cache of k8s.io/apiserver (pkg/storage/cacher/watch_cache.go) it keeps a limited
    number of events, and refuses to begin before them. All watches read the same events, each from
    a position of its own, so that what a slow client has not read takes no memory.

    Args:
        lock: held by whoever changes the store.
        capacity: how many events are kept at least; up to twice as many are.
    """

    def __init__(self, store: Store, lock: threading.RLock, capacity: int = CAPACITY) -> None:
        self._history_grown = threading.Condition(lock)
        # A lock of its own, because the other one is held while controllers and scheduler work:
        # clients have the events of that meanwhile.
        self._events_lock = threading.Lock()
        self._capacity = capacity
        self._events: list[Event] = []
        self._first_position = 0
        self._oldest = store.revision
        self._objects_by_uid = {uid_of(obj): obj for obj in store.iterate_objects()}
        self._followers: list[Callable[[], None]] = []
        self.closed = False
        for kind in KINDS:
            store.listen(kind, self._record_change)

    @property
    def position(self) -> int:
        """The position behind the newest event."""
        with self._events_lock:
            return self._first_position + len(self._events)

    def find_position(self, revision: int) -> int:
        """Return the position of the first event after a revision of the store.

        Raises ApiError: 410, events after it are forgotten.
        """
        with self._events_lock:
            if revision < self._oldest:
                text = f"too old resource version: {revision} ({self._oldest})"
                raise ApiError(410, "Expired", text)
            index = bisect_right(self._events, revision, key=lambda event: event.revision)
            return self._first_position + index

    def read_events(self, position: int) -> list[Event]:
        """Return the events from a position on, oldest first. Raises FellBehindError."""
        with self._events_lock:
            if position < self._first_position:
                raise FellBehindError
            return self._events[position - self._first_position :]

    def has_news(self, position: int) -> bool:
        """Return whether there are events from a position on, or there will be none any more."""
        return self.closed or self.position > position

    def follow(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function after each event from now on, and at the end.

        Returns what ends that.
        """
        self._followers.append(listener)
        return lambda: self._followers.remove(listener)

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds of the objects; it is asked after each change."""
        with self._history_grown:
            return self._history_grown.wait_for(condition, seconds)

    def expire(self) -> None:
        """Forget all events, as after a compaction of etcd.

        Open watches end, and one that goes on from a resourceVersion before the newest is answered
        with 410 Expired.
        """
        with self._history_grown:
            with self._events_lock:
                if self._events:
                    self._oldest = self._events[-1].revision
                # One more, so that also who has read all of them is behind.
                self._first_position += len(self._events) + 1
                self._events.clear()
            self._tell_followers()

    def close(self) -> None:
        with self._history_grown:
            self.closed = True
            self._tell_followers()

    def _record_change(self, change: str, obj: Obj) -> None:
        uid = uid_of(obj)
        old = self._objects_by_uid.pop(uid, None)
        if change != "DELETED":
            self._objects_by_uid[uid] = obj
            change = "ADDED" if old is None else "MODIFIED"
        with self._history_grown:
            with self._events_lock:
                # Many at once, because each time all that stay are moved.
                if len(self._events) >= 2 * self._capacity:
                    self._oldest = self._events[self._capacity - 1].revision
                    del self._events[: self._capacity]
                    self._first_position += self._capacity
                self._events.append(Event(change, obj, old))
            self._tell_followers()

    def _tell_followers(self) -> None:
        for listener in tuple(self._followers):
            listener()
        self._history_grown.notify_all()


class Backend:
    """The objects of one cluster. ``kubernetes``: version that is reported, for example 1.37.1."""

    def __init__(
        self,
        cluster: Cluster,
        api: ApiServer,
        handler: Handler,
        kubernetes: str,
        lock: threading.RLock,
    ) -> None:
        self.api = api
        self.handler = handler
        self.kubernetes = kubernetes
        self.store = cluster.store
        self.kinds = cluster.served_kinds
        self.kubernetes_minor = cluster.minor
        self.minor = int(cluster.minor.partition(".")[2])
        self.lock = lock
        self.history = History(cluster.store, lock)
        self.encoded = EncodedObjects(cluster.minor)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock for a request that changes something."""
        with self.lock:
            yield

    def select(self, call: Call) -> list[Obj]:
        """Return the stored objects that a call selects, in the order of their keys in etcd."""
        selects = call.build_selection()
        selected = [obj for obj in self.store.all(call.kind.name) if selects(obj)]
        return sorted(selected, key=lambda obj: (namespace_of(obj), name_of(obj)))
