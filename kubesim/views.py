"""The few among thousands of objects that a controller has to look at, kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kube.values import Obj
from kubesim.store import Store, uid_of


class View:
    """The objects of some kinds in a store to which something applies.

    Args:
        applies: a function of the object alone.
    """

    def __init__(self, store: Store, kinds: Iterable[str], applies: Callable[[Obj], bool]) -> None:
        self._applies = applies
        self._objects_by_kind: dict[str, dict[str, Obj]] = {kind: {} for kind in kinds}
        for kind in self._objects_by_kind:
            for obj in store.all(kind):
                self._take_change("MODIFIED", obj)
            store.listen(kind, self._take_change)

    def list_objects(self) -> list[Obj]:
        """Return them by kind, and of a kind in the order in which it came to apply."""
        return [obj for objects in self._objects_by_kind.values() for obj in objects.values()]

    def _take_change(self, change: str, obj: Obj) -> None:
        objects = self._objects_by_kind[obj["kind"]]
        if change != "DELETED" and self._applies(obj):
            objects[uid_of(obj)] = obj
        else:
            objects.pop(uid_of(obj), None)


def is_owned_or_deleted(obj: Obj) -> bool:
    """Return whether an object has owners, or is being deleted."""
    return "ownerReferences" in obj["metadata"] or "deletionTimestamp" in obj["metadata"]
