"""Selectors of objects, and watches: changes of a store as a selector sees them.

Sources: ``toSelectableFields`` in
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
from kubesim.apiserver.labelselector import parse_label_selector
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


def matches_fields(kind: Kind, fields: Mapping[str, str], obj: Obj) -> bool:
    """Return whether an object has these values in these fields. Raises ApiError."""
    _check_fields(kind, kind.api_version, fields)
    return all(_read_field(obj, field) == value for field, value in fields.items())


def split_field_selector(text: str) -> list[list[str]]:
    """Return field, operator and value of each term. Raises ApiError: 400, it is malformed."""
    terms = [re.split(r"(==|!=|=)", term, maxsplit=1) for term in text.split(",") if term]
    for term in terms:
        if len(term) != 3:
            why = f"invalid selector: '{text}'; can't understand '{term[0]}'"
            raise ApiError(400, "BadRequest", why)
    return terms


def field_selector(kind: Kind, api_version: str, text: str) -> Matches:
    """Return the predicate that a field selector stands for.

    Raises ApiError: 400, it is malformed, or there is no selecting by one of its fields.
    """
    terms = split_field_selector(text)
    _check_fields(kind, api_version, {field: value for field, _, value in terms})
    return lambda obj: all((_read_field(obj, f) == v) != (op == "!=") for f, op, v in terms)


def label_selector(text: str) -> Matches:
    """Return the predicate of a label selector. Raises ApiError: 400, it is malformed."""
    matches = parse_label_selector(text)
    return lambda obj: matches(obj["metadata"].get("labels") or {})


def _check_fields(kind: Kind, api_version: str, fields: Mapping[str, str]) -> None:
    selectable_fields = {"metadata.name", *_SELECTABLE.get(kind.name, ())}
    selectable_fields |= {"metadata.namespace"} if kind.namespaced else set()
    for field in fields:
        if field in selectable_fields or field == "metadata.namespace":
            continue
        # Each conversion function has its own words; who has none is answered by
        # DefaultMetaV1FieldSelectorConversion.
        if kind.name == "ResourceSlice":
            text = f"field label not supported for {api_version}, Kind={kind.name}: {field}"
        elif kind.name in _SELECTABLE or kind.name == "Node":
            text = f"field label not supported: {field}"
        else:
            text = (
                f'"{field}" is not a known field selector: only "metadata.name", '
                '"metadata.namespace"'
            )
        raise ApiError(400, "BadRequest", text)


def _read_field(obj: Any, field: str) -> str:
    for segment in field.split("."):
        obj = (obj or {}).get(segment)
    return str(obj or "")


Tell = Callable[[str, Obj], None]


def as_seen(
    change: str, obj: Obj, previous: Obj | None, selects: Matches
) -> tuple[str, Obj] | None:
    """Return type and object of the event that a watch has of a change; None: it has none.

    What comes to be selected is ADDED, what is selected no longer DELETED, in its last state that
    was selected and with the version of the change.

    Args:
        change: DELETED, or anything else.
        previous: as it was, if it was selected.
    """
    if change != "DELETED" and selects(obj):
        return "ADDED" if previous is None else "MODIFIED", obj
    if previous is None:
        return None
    version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
    return "DELETED", {**previous, "metadata": {**previous["metadata"], **version}}


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
        event = as_seen(change, obj, self._selected.get(uid_of(obj)), self._selects)
        if event is None:
            return
        if event[0] == "DELETED":
            del self._selected[uid_of(obj)]
        else:
            self._selected[uid_of(obj)] = obj
        self._tell(*event)

    def stop(self) -> None:
        self._store.unlisten(self._kind, self.hear)
