"""What a front serves: an API server's objects, their history, and who may change them when."""

from __future__ import annotations

import threading
from collections import deque
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


class History:
    """Events of a store since this was made; the lock guards both.

    As the watch cache of k8s.io/apiserver (pkg/storage/cacher/watch_cache.go) it keeps a limited
    number of events, and refuses to begin before them.
    """

    def __init__(self, store: Store, lock: threading.RLock, capacity: int = CAPACITY) -> None:
        self._history_grown = threading.Condition(lock)
        self._events: deque[Event] = deque(maxlen=capacity)
        self._oldest = store.revision
        self._objects_by_uid = {uid_of(obj): obj for obj in store.iterate_objects()}
        self._followers: list[Callable[[Event | None], None]] = []
        self.closed = False
        for kind in KINDS:
            store.listen(kind, self._record_change)

    def events_since(self, revision: int) -> list[Event]:
        """Return the events after a revision of the store, oldest first. Raises ApiError."""
        if revision < self._oldest:
            text = f"too old resource version: {revision} ({self._oldest})"
            raise ApiError(410, "Expired", text)
        return [event for event in self._events if event.revision > revision]

    def follow(self, listener: Callable[[Event | None], None]) -> Callable[[], None]:
        """Call a function with each event from now on, and with None at the end.

        Returns what ends that.
        """
        self._followers.append(listener)
        if self.closed:
            listener(None)
        return lambda: self._followers.remove(listener)

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds of the objects; it is asked after each change."""
        with self._history_grown:
            return self._history_grown.wait_for(condition, seconds)

    def close(self) -> None:
        with self._history_grown:
            self.closed = True
            self._publish(None)

    def _record_change(self, change: str, obj: Obj) -> None:
        uid = uid_of(obj)
        old = self._objects_by_uid.pop(uid, None)
        if change != "DELETED":
            self._objects_by_uid[uid] = obj
            change = "ADDED" if old is None else "MODIFIED"
        with self._history_grown:
            if len(self._events) == self._events.maxlen:
                self._oldest = self._events[0].revision
            event = Event(change, obj, old)
            self._events.append(event)
            self._publish(event)

    def _publish(self, event: Event | None) -> None:
        for listener in tuple(self._followers):
            listener(event)
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
        self.gates = cluster.gates
        self.minor = int(cluster.minor.partition(".")[2])
        self.lock = lock
        self.history = History(cluster.store, lock)

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
