"""What a watch tells: the changes of a store's objects as one sees them who selects some of them.

Source: ``convertToWatchEvent`` in staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go:
what comes to be selected is ADDED, what is selected no longer DELETED, in its last state that was
selected and with the version of the change; what was not and is not is not told.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.targets.base import Obj
from conformance.targets.reference.store import Store, uid_of

Tell = Callable[[str, Obj], None]


class Watch:
    """Follows the objects of a kind from now on.

    Args:
        store: where they are.
        kind: theirs.
        selects: which of them are watched.
        tell: called with ADDED, MODIFIED or DELETED and the object.
    """

    def __init__(self, store: Store, kind: str, selects: Callable[[Obj], bool], tell: Tell) -> None:
        self._store = store
        self._kind = kind
        self._selects = selects
        self._tell = tell
        self._selected = {uid_of(obj): obj for obj in store.all(kind) if selects(obj)}
        store.listen(kind, self.hear)

    def hear(self, change: str, obj: Obj) -> None:
        """Take a change of the store."""
        uid = uid_of(obj)
        before = self._selected.get(uid)
        if change != "DELETED" and self._selects(obj):
            self._selected[uid] = obj
            self._tell("ADDED" if before is None else "MODIFIED", obj)
        elif before is not None:
            del self._selected[uid]
            version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            self._tell("DELETED", {**before, "metadata": {**before["metadata"], **version}})

    def stop(self) -> None:
        """Tell nothing any more."""
        self._store.unlisten(self._kind, self.hear)
