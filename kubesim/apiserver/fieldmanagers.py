"""Server-side apply: which manager has applied which field, and who may change it.

As sigs.k8s.io/structured-merge-diff does it (merge/update.go), for the kinds of DRA, pods, and
the metadata of all. A field is a manager's as long as it has the value that this manager applied,
and of several if all applied the same; a write in another way takes it over. Lists are whole
values but for those below (``+listType=map`` and ``set`` in the Go types).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from kube.errors import ApiError, Cause
from kube.values import Obj, Request
from kubesim.store import clone

Key = tuple[tuple[str, Any], ...]
"""Key fields of an element of a list, with their values; a member of a set has the name ''."""
Path = tuple[str | Key, ...]
Fields = dict[Path, Any]

_LISTS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("metadata", "finalizers"): ("",),
    ("metadata", "ownerReferences"): ("uid",),
    ("status", "conditions"): ("type",),
    ("status", "devices"): ("device", "driver", "pool", "shareID"),
    ("status", "devices", "conditions"): ("type",),
    ("status", "reservedFor"): ("uid",),
}
"""Lists whose elements have owners of their own -> their key fields, sorted."""

_POD_LISTS: Final = {
    "containers": ("name",),
    "env": ("name",),
    "initContainers": ("name",),
    "resourceClaims": ("name",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""The same of a pod's spec, wherever that is, by the last part of the path."""

_ATOMIC: Final = frozenset({("status", "devices", "data")})
_SUITE: Final = "dra-conformance"  # Stands for all who are not named, the controllers too.


@dataclass(frozen=True, slots=True)
class Manager:
    """Who has fields.

    ``version``: in which an update was sent; empty of one who applies.
    """

    name: str
    version: str = ""

    def describe(self, subresource: str) -> str:
        """Return it as conflicts name it (``printManager``)."""
        words = f'"{self.name}"' + (f' with subresource "{subresource}"' if subresource else "")
        return f"{words} using {self.version}" if self.version else words


class FieldManagers:
    """What each manager has, by object and subresource, with the value that it gave."""

    def __init__(self) -> None:
        self._fields: dict[tuple[str, str], dict[Manager, Fields]] = {}
        self._created: dict[str, tuple[Manager, Obj]] = {}
        """Uid -> who created an object, and how: most are never applied or changed by a client."""

    def record_applied(self, request: Request, stored: Obj) -> None:
        """Note what a manager has applied, with the values that came of it (defaults are added)."""
        assert request.manager is not None
        key = stored["metadata"]["uid"], request.subresource
        live_fields = dict(_leaves(stored, ()))
        fields = {
            path: live_fields.get(path, value)
            for path, value in _list_applied_fields(request).items()
        }
        self._fields_of(*key)[Manager(request.manager.name)] = fields

    def record_written(
        self, writer: str, version: str, subresource: str, old: Obj | None, new: Obj
    ) -> None:
        """Note what who creates or updates an object has changed; ``old`` is None of a new one."""
        uid, manager = new["metadata"]["uid"], Manager(writer, version)
        if old is None:
            self._created[uid] = manager, new
            return
        earlier_fields = dict(_leaves(old, ()))
        fields = self._fields_of(uid, subresource).setdefault(manager, {})
        for path, value in _leaves(new, ()):
            if path not in earlier_fields or earlier_fields[path] != value:
                fields[path] = value

    def _fields_of(self, uid: str, subresource: str) -> dict[Manager, Fields]:
        managers = self._fields.setdefault((uid, subresource), {})
        if not subresource and uid in self._created:
            creator, created = self._created.pop(uid)
            managers[creator] = dict(_leaves(created, ()))
        return managers

    def change(self, request: Request) -> Callable[[Obj], Obj]:
        """Return the change that a request makes of an object.

        The change raises:
            ApiError: 409, another manager has a field with another value.
        """
        return lambda live: self._merge_applied(live, request)

    def _merge_applied(self, live: Obj, request: Request) -> Obj:
        assert request.manager is not None
        applied_fields, applier = _list_applied_fields(request), Manager(request.manager.name)
        live_fields = dict(_leaves(live, ()))
        managers = self._managers(live, request, live_fields)
        earlier_fields = managers.get(applier, {})
        paths_by_manager = {
            other: {path for path, value in fields.items() if live_fields.get(path) == value}
            for other, fields in managers.items()
            if other != applier
        }
        changed = [
            path for path, value in applied_fields.items() if live_fields.get(path, value) != value
        ]
        conflicts = [
            (other, path)
            for other, paths in paths_by_manager.items()
            for path in changed
            if path in paths
        ]
        if conflicts and not request.manager.force:
            raise _new_conflict(conflicts, request.subresource)
        paths_of_others = set().union(*paths_by_manager.values())
        new = clone(live)
        for path, value in earlier_fields.items():
            if (
                path not in applied_fields
                and path not in paths_of_others
                and live_fields.get(path) == value
            ):
                _remove(new, path)
        for path, value in applied_fields.items():
            _set(new, path, value)
        if "resourceVersion" in request.body["metadata"]:
            new["metadata"]["resourceVersion"] = request.body["metadata"]["resourceVersion"]
        return new

    def _managers(self, live: Obj, request: Request, live_fields: Fields) -> dict[Manager, Fields]:
        """Return what each manager has of an object: the suite what no other has as it is.

        So that of its fields which others have applied since, as they were, the suite has still.
        """
        managers = self._fields_of(live["metadata"]["uid"], request.subresource)
        suite = Manager(_SUITE, request.ref.api_version)
        others = [fields for manager, fields in managers.items() if manager.name != _SUITE]
        suite_fields = managers.get(suite, {})
        managers[suite] = {
            path: value
            for path, value in live_fields.items()
            if (path in suite_fields and suite_fields[path] == value)
            or not any(path in fields and fields[path] == value for fields in others)
        }
        return managers


def _list_applied_fields(request: Request) -> Fields:
    """Return what a request applies: of the status, or of all else (``GetResetFields``)."""
    status = request.subresource == "status"
    reset_fields = (
        {"apiVersion", "kind", "metadata"} if status else {"apiVersion", "kind", "status"}
    )
    body = {field: value for field, value in request.body.items() if field not in reset_fields}
    fields = dict(_leaves(body, ()))
    unowned = ("name", "namespace", "resourceVersion", "uid")
    return {
        path: v for path, v in fields.items() if path[:2] not in {("metadata", n) for n in unowned}
    }


def _names(path: Path) -> tuple[str, ...]:
    return tuple(segment for segment in path if isinstance(segment, str))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield every field that can have an owner of its own, with its value."""
    names = _names(path)
    keys = None
    if isinstance(value, list):
        keys = _LISTS.get(names) or (_POD_LISTS.get(names[-1]) if "spec" in names else None)
    if keys is not None:
        for item in value:
            yield from _leaves(item, (*path, _key(item, keys)))
    elif isinstance(value, dict) and value and names not in _ATOMIC:
        for field, inner in value.items():
            yield from _leaves(inner, (*path, field))
    elif value != {}:
        yield path, value


def _key(item: Any, keys: tuple[str, ...]) -> Key:
    if keys == ("",):
        return (("", item),)
    return tuple((field, item[field]) for field in keys if field in item)


def _new_conflict(conflicts: list[tuple[Manager, Path]], subresource: str) -> ApiError:
    """Return the 409 of ``NewConflictError`` of apimachinery's managedfields."""
    places: dict[str, list[str]] = {}
    for owner, path in conflicts:
        places.setdefault(owner.describe(subresource), []).append(_format_path(path))
    causes = [
        Cause(place, "FieldManagerConflict", f"conflict with {owner}")
        for owner, listed in places.items()
        for place in sorted(listed)
    ]
    if len(causes) == 1:
        text = f"1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = (
            "\n- ".join([f"conflicts with {owner}:", *sorted(listed)])
            for owner, listed in sorted(places.items())
        )
        text = f"{len(causes)} conflicts: {chr(10).join(lines)}"
    return ApiError(409, "Conflict", f"Apply failed with {text}", causes)


def _format_path(path: Path) -> str:
    return "".join(
        f".{segment}" if isinstance(segment, str) else f"[{_format_key(segment)}]"
        for segment in path
    )


def _format_key(key: Key) -> str:
    return ",".join(f"{field}={json.dumps(value)}" for field, value in key)


def _find_holder(obj: Any, path: Path, *, make: bool) -> Any:
    """Return what holds the last part of a path; None if it is not there and not to be made."""
    for segment, next_segment in pairwise(path):
        if isinstance(segment, str):
            if segment not in obj:
                if not make:
                    return None
                obj[segment] = {} if isinstance(next_segment, str) else []
            obj = obj[segment]
            continue
        element = next((item for item in obj if set(segment) <= {*_scalars(item)}), None)
        if element is None:
            if not make:
                return None
            element = dict(segment)
            obj.append(element)
        obj = element
    return obj


def _scalars(item: Any) -> list[tuple[str, Any]]:
    if not isinstance(item, dict):
        return [("", item)]
    return [(key, value) for key, value in item.items() if not isinstance(value, dict | list)]


def _set(obj: Obj, path: Path, value: Any) -> None:
    holder, last = _find_holder(obj, path, make=True), path[-1]
    if isinstance(last, str):
        holder[last] = clone(value)
    elif value not in holder:
        holder.append(value)


def _remove(obj: Obj, path: Path) -> None:
    """Take a field away; with a key field of an element, which nobody else has, the element."""
    *parents, last = path
    element = parents[-1] if parents and not isinstance(parents[-1], str) else ()
    if last in dict(element):
        path, last = path[:-1], path[-2]
    holder = _find_holder(obj, path, make=False)
    if isinstance(last, str) and holder is not None:
        holder.pop(last, None)
    elif holder is not None:
        holder[:] = [item for item in holder if not set(last) <= {*_scalars(item)}]
