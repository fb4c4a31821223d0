"""Label and field selectors, and watches: changes of a store as a selector sees them.

Sources: k8s.io/apimachinery/pkg/labels/selector.go; ``toSelectableFields`` in
pkg/registry/resource/resourceslice, pkg/registry/core/pod and pkg/registry/core/event (every kind
has the fields of its metadata); ``convertToWatchEvent`` in
staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kube.errors import ApiError
from kube.values import Obj
from kubesim.resources import Kind
from kubesim.store import Store, uid_of

Matches = Callable[[Obj], bool]

_SELECTABLE: Final = {
    "Event": (
        *(f"involvedObject.{name}" for name in ("apiVersion", "kind", "name", "namespace", "uid")),
        "reason",
        "type",
    ),
    "Namespace": ("status.phase",),
    "Pod": ("spec.nodeName", "spec.schedulerName", "status.phase"),
    "ResourceSlice": ("spec.driver", "spec.nodeName", "spec.pool.name"),
}
_TERM: Final = re.compile(
    r"(?P<absent>!)?(?P<key>[\w./-]+)"
    r"(?:(?P<op>==|=|!=)(?P<value>[\w.-]*)|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?"
)


def selects(kind: Kind, fields: Mapping[str, str], obj: Obj) -> bool:
    """Whether an object has these values in these fields. Raises ApiError."""
    _check_fields(kind, fields)
    return all(_value(obj, field) == value for field, value in fields.items())


def field_selector(kind: Kind, text: str) -> Matches:
    """What a field selector selects.

    Raises ApiError: 400, it is malformed, or there is no selecting by one of its fields.
    """
    terms = [re.split(r"(==|!=|=)", term, maxsplit=1) for term in text.split(",") if term]
    for term in terms:
        if len(term) != 3:
            raise ApiError(400, "BadRequest", f"invalid selector: '{text}'; can't understand it")
    _check_fields(kind, {field: value for field, _, value in terms})
    return lambda obj: all((_value(obj, f) == v) != (op == "!=") for f, op, v in terms)


def label_selector(text: str) -> Matches:
    """What a label selector selects. Raises ApiError: 400, it is malformed."""
    # A comma within parentheses does not end a term.
    terms = [_TERM.fullmatch(one.strip()) for one in re.split(r",(?![^()]*\))", text) if text]
    found = [term for term in terms if term is not None]
    if len(found) != len(terms):
        raise ApiError(400, "BadRequest", f"unable to parse requirement: {text!r}")
    return lambda obj: all(_has(term, obj["metadata"].get("labels") or {}) for term in found)


def _has(term: re.Match[str], labels: Mapping[str, str]) -> bool:
    value, wanted = labels.get(term["key"]), term["value"]
    if term["set"]:
        there = value in {one.strip() for one in term["values"].split(",")}
        return there == (term["set"] == "in")
    if term["op"]:
        return (value == wanted) != (term["op"] == "!=")
    return (value is None) == bool(term["absent"])


def _check_fields(kind: Kind, fields: Mapping[str, str]) -> None:
    known = {"metadata.name", *_SELECTABLE.get(kind.name, ())}
    known |= {"metadata.namespace"} if kind.namespaced else set()
    for field in fields:
        if field not in known:
            text = f'field label not supported for {kind.name}: "{field}"'
            raise ApiError(400, "BadRequest", text)


def _value(obj: Any, field: str) -> str:
    for part in field.split("."):
        obj = (obj or {}).get(part)
    return str(obj or "")


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
