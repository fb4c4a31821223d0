"""What a watch shows: the changes of a store's objects as those that a selector selects.

Source: ``convertToWatchEvent`` in staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.targets.reference.apiserver.selectors import Matches
from conformance.targets.reference.store import Store, uid_of
from conformance.targets.seam.values import Obj

Tell = Callable[[str, Obj], None]


def as_seen(change: str, obj: Obj, before: Obj | None, selects: Matches) -> tuple[str, Obj] | None:
    """Type and object of the event that a watch has of a change; None: it has none.

    What comes to be selected is ADDED, what is selected no longer DELETED, in its last state that
    was selected and with the version of the change.

    Args:
        change: DELETED, or anything else.
        before: as it was, if it was selected.
    """
    if change != "DELETED" and selects(obj):
        return "ADDED" if before is None else "MODIFIED", obj
    if before is None:
        return None
    version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
    return "DELETED", {**before, "metadata": {**before["metadata"], **version}}


class Watch:
    """Follows the objects of a kind from now on.

    Args:
        store: where they are.
        tell: called with ADDED, MODIFIED or DELETED and the object.
    """

    def __init__(self, store: Store, kind: str, selects: Matches, tell: Tell) -> None:
        self._store = store
        self._kind = kind
        self._selects = selects
        self._tell = tell
        self._selected = {uid_of(obj): obj for obj in store.all(kind) if selects(obj)}
        store.listen(kind, self.hear)

    def hear(self, change: str, obj: Obj) -> None:
        """Take a change of the store."""
        seen = as_seen(change, obj, self._selected.get(uid_of(obj)), self._selects)
        if seen is None:
            return
        if seen[0] == "DELETED":
            del self._selected[uid_of(obj)]
        else:
            self._selected[uid_of(obj)] = obj
        self._tell(*seen)

    def stop(self) -> None:
        self._store.unlisten(self._kind, self.hear)
