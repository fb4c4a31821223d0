"""The objects of one kind as they are known here, never going back to an older state.

Two sources feed it: a watch, and the responses to the scenario's own requests. The second may be
ahead of the first, so what decides is ``metadata.resourceVersion``, compared as a number. (Since
Kubernetes 1.35 the API promises that it can be compared so; before, it was etcd's revision, which
behaves the same.)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from kube.values import Obj


def version_of(obj: Mapping[str, object]) -> int:
    """``metadata.resourceVersion`` as a number; 0 where there is none that is a number."""
    metadata = obj.get("metadata")
    text = metadata.get("resourceVersion", "") if isinstance(metadata, dict) else ""
    return int(text) if isinstance(text, str) and text.isdigit() else 0


_REMEMBERED = 10_000
"""How many removed objects are known to be gone: a change that is late is seconds late."""


class Store:
    """The objects of one kind, by namespace and name. Safe for threads.

    What it hands out is shared: to be read, not to be changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[tuple[str, str], Obj] = {}
        self._gone: dict[str, None] = {}  # uids, the oldest first

    def put(self, obj: Obj) -> bool:
        """Take an object's newer state; False if nothing new was in it."""
        key = _key(obj)
        with self._lock:
            if obj["metadata"].get("uid") in self._gone:
                return False
            present = self._objects.get(key)
            if present is not None and version_of(present) >= version_of(obj) > 0:
                return False
            self._objects[key] = obj
            return True

    def remove(self, obj: Obj) -> bool:
        """Note that an object is gone for good; False if that was known, or a newer one is there.

        ``obj`` may be any state of it: what counts is its uid.
        """
        key, uid = _key(obj), obj["metadata"].get("uid")
        with self._lock:
            if uid:
                self._gone[uid] = None
                if len(self._gone) > _REMEMBERED:
                    del self._gone[next(iter(self._gone))]
            present = self._objects.get(key)
            if present is None or (uid and present["metadata"].get("uid") != uid):
                return False
            del self._objects[key]
            return True

    def replace(self, objects: Iterable[Obj], version: int) -> None:
        """Replace the contents by a list made at ``version``; keep objects known to be newer."""
        listed = {_key(obj): obj for obj in objects}
        with self._lock:
            for key, present in self._objects.items():
                if version_of(present) > version and version_of(listed.get(key, {})) < version_of(
                    present
                ):
                    listed[key] = present
            self._objects = {
                key: obj
                for key, obj in listed.items()
                if obj["metadata"].get("uid") not in self._gone
            }

    def get(self, namespace: str | None, name: str) -> Obj | None:
        with self._lock:
            return self._objects.get((namespace or "", name))

    def list(self, labels: Mapping[str, str] | None = None) -> list[Obj]:
        """Return all objects that carry these labels, by namespace and name."""
        with self._lock:
            entries = sorted(self._objects.items())
        return [obj for _, obj in entries if has_labels(obj, labels)]


def has_labels(obj: Obj, labels: Mapping[str, str] | None) -> bool:
    """Return whether an object carries all of these labels with these values."""
    if not labels:
        return True
    present = obj["metadata"].get("labels") or {}
    return all(present.get(name) == value for name, value in labels.items())


def _key(obj: Obj) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]
