"""What watches bring: for a step `watch`, and each state of the pods and claims of namespaces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kube.base.errors import TargetError
from kube.store import version_of

Event = tuple[str, Mapping[str, Any]]  # ``ADDED``, ``MODIFIED`` or ``DELETED``, and the object.

Obj = dict[str, Any]

Version = tuple[int, str, Obj | None]
"""resourceVersion, uid, the object as it is since then (None: deleted)."""

_KEPT = {
    "metadata": ("name", "namespace", "uid", "deletionTimestamp", "ownerReferences"),
    "spec": ("nodeName", "resourceClaims"),
    "status": ("phase", "resourceClaimStatuses", "allocation", "reservedFor"),
}


class Watching:
    """Keeps what it hears; safe for threads."""

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._lists = 0
        self.stop = stop

    def hear(self, change: str, obj: Mapping[str, Any]) -> None:
        with self._lock:
            if change == "LISTED":
                self._lists += 1
            elif change != "TROUBLE":
                self._events.append((change, obj))

    def events(self) -> list[Event]:
        """All that came so far. Raises TargetError."""
        with self._lock:
            if self._lists > 1:
                raise TargetError(
                    "the API server has forgotten where a watch was (410 Gone), so what the watch"
                    " did not bring meanwhile is not known"
                )
            return list(self._events)


class Following:
    """Listens to watches of pods and claims; safe for threads.

    ``gap``: something may have happened that no watch has told.
    """

    def __init__(
        self,
        namespaces: Collection[str],
        catch_up: Callable[[Following], None] = lambda _: None,
        stop: Callable[[Following], None] = lambda _: None,
    ) -> None:
        """Use ``Scope.follow``.

        ``catch_up``: returns when all is heard that the target has said so far.
        """
        self.gap = False
        self._namespaces = frozenset(namespaces)
        self._catch_up = catch_up
        self._stop = stop
        self._told = threading.Condition()
        self._seen: dict[str, int] = {}
        self._versions: list[Version] = []

    def hear(self, change: str, obj: Mapping[str, Any]) -> None:
        if change == "LISTED":
            self.gap = True
        elif change != "TROUBLE" and obj["metadata"].get("namespace") in self._namespaces:
            uid, version = obj["metadata"]["uid"], version_of(obj)
            with self._told:
                if version > self._seen.get(uid, 0):
                    self._seen[uid] = version
                    state = None if change == "DELETED" else _reduced(obj)
                    self._versions.append((version, uid, state))
                    self._told.notify_all()

    def await_seen(self, listed: Mapping[str, int], timeout: float) -> bool:
        """Wait until objects (uid -> version) were heard of in that version, or a newer one."""
        with self._told:
            return self._told.wait_for(
                lambda: all(self._seen.get(uid, 0) >= version for uid, version in listed.items()),
                timeout,
            )

    def heard(self) -> list[Version]:
        """What was heard, by resourceVersion."""
        with self._told:
            return sorted(self._versions, key=lambda version: version[0])

    def versions(self) -> list[Version]:
        """All that the target has said, by resourceVersion. Raises TargetError: a watch lags."""
        self._catch_up(self)
        return self.heard()

    def now(self) -> list[Obj]:
        """What there is, as far as it was heard."""
        last = {uid: state for _, uid, state in self.heard()}
        return [state for state in last.values() if state is not None]

    def close(self) -> None:
        self._stop(self)


def _reduced(obj: Mapping[str, Any]) -> Obj:
    found: Obj = {"kind": obj["kind"]}
    for part, fields in _KEPT.items():
        given = obj.get(part) or {}
        found[part] = {name: given[name] for name in fields if given.get(name)}
    return found
