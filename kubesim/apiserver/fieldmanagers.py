"""Managed fields: which manager has written which field, and who may apply what.

As k8s.io/apimachinery (pkg/util/managedfields) and structured-merge-diff (merge/update.go) do it:
who creates or updates an object has the fields that it changed, who applies has the fields that it
applied, and both stand in ``metadata.managedFields``. Controllers write past this, so what they
changed is found, and given to one manager, when a client writes the object again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Final

from kube.errors import ApiError, Cause
from kube.values import Obj, Request
from kubesim.apiserver import conversion, decoding, fieldsets
from kubesim.apiserver.fieldsets import Comparison, Path
from kubesim.clock import VirtualClock
from kubesim.goforms import encode_object, load_forms_of
from kubesim.resources import DRA_GROUP, KINDS
from reference_allocator.api import schema
from reference_allocator.api.quoting import go_quote

OwnFields = Callable[[Obj | None, Obj, Any], list[Obj]]
"""From an object as it was (None: it is new), as it becomes, both in their stored version, and the
``managedFields`` that came with the request, to those that it has now."""

_SUITE: Final = "dra-conformance"  # Stands for all who are not named, the controllers too.
_UNOWNED: Final = frozenset(
    {("apiVersion",), ("kind",), ("metadata",)}
    | {("metadata", name) for name in ("name", "namespace", "creationTimestamp", "selfLink", "uid")}
    | {("metadata", name) for name in ("clusterName", "generation", "managedFields")}
    | {("metadata", "resourceVersion")}
)
"""Fields that nobody has (``stripMetaManager``)."""

_STATUS_RESETS: Final[Mapping[str, tuple[Path, ...]]] = {
    "Deployment": (("metadata", "labels"),),
    "Pod": (("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
}
"""Kind of another group than DRA's -> what its status leaves as it is, beside the spec."""


@dataclass(frozen=True, slots=True)
class Manager:
    """Who has fields.

    Attributes:
        api_version: in which an update was sent; empty of one who applies.
        subresource: through which it wrote, empty for the object itself.
    """

    name: str
    api_version: str
    subresource: str

    def describe(self) -> str:
        """Return it as conflicts name it (``printManager``)."""
        words = go_quote(self.name)
        if self.subresource:
            words += f" with subresource {go_quote(self.subresource)}"
        return f"{words} using {self.api_version}" if self.api_version else words


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager has, in the version in which it wrote that last. ``time``: RFC 3339."""

    fields: Set[Path]
    api_version: str
    time: str


Managers = dict[Manager, Owned]


class FieldManagers:
    """Keeps ``metadata.managedFields`` of all objects that clients write to a server of a minor."""

    def __init__(self, clock: VirtualClock, kubernetes: str) -> None:
        self._clock = clock
        self._forms = load_forms_of(kubernetes)
        self._known_objects: dict[str, Obj] = {}

    def remember(self, stored: Obj) -> None:
        """Note an object whose managed fields are true of it; what comes later is of others."""
        self._known_objects[stored["metadata"]["uid"]] = stored

    def forget(self, uid: str) -> None:
        """Note that an object is gone."""
        self._known_objects.pop(uid, None)

    def own_updated(self, writer: str, api_version: str, subresource: str) -> OwnFields:
        """Return what gives a creation's or an update's fields to who wrote them."""
        manager = Manager(writer, api_version, subresource)

        def own(old: Obj | None, new: Obj, sent: Any) -> list[Obj]:
            managers = self._read_managers(old, api_version)
            if sent is not None and not subresource and sent != _list_entries(old):
                is_reset = sent in ([], [{}])  # they are to be forgotten
                managers = {} if is_reset else _decode_entries(sent) or managers
            if old is not None and not managers:
                return []
            return _encode_entries(self._update(managers, old, new, manager, is_sent=True))

        return own

    def own_applied(self, request: Request) -> OwnFields:
        """Return what gives the fields of a server-side apply to who applies."""

        def own(old: Obj | None, new: Obj, sent: Any) -> list[Obj]:
            if old is None:
                manager = self._applier(request)
                fields = _list_applied_fields(request)
                owned = Owned(fields, request.ref.api_version, self._clock.format_timestamp())
                return _encode_entries({manager: owned} if fields else {})
            entries: list[Obj] = sent or []
            if _without_entries(new) == _without_entries(old):
                # What changes nothing but times is not stored.
                times = {_identify(entry): entry.get("time") for entry in _list_entries(old)}
                entries = [{**e, "time": times.get(_identify(e), e["time"])} for e in entries]
            return entries

        return own

    def change(self, request: Request) -> Callable[[Obj], Obj]:
        """Return the change that a server-side apply makes of an object, with its managed fields.

        The change raises:
            ApiError: 409, another manager has a field with another value.
        """
        return lambda live: self._merge_applied(live, request)

    def _applier(self, request: Request) -> Manager:
        assert request.manager is not None
        return Manager(request.manager.name, "", request.subresource)

    def _merge_applied(self, live: Obj, request: Request) -> Obj:
        assert request.manager is not None
        version, applier = request.ref.api_version, self._applier(request)
        root = schema.roots()[f"{version}/{request.ref.kind}"]
        managers = self._read_managers(live, version)
        encoded = encode_object(live, self._forms)
        earlier = managers.get(applier)
        now = self._clock.format_timestamp()
        managers[applier] = Owned(_list_applied_fields(request), version, now)
        new: Obj = fieldsets.merge(root, encoded, request.body)
        if earlier is not None and earlier.fields:
            new = self._prune(new, managers, earlier, version)

        def compare(root: str, wanted: str) -> Comparison:
            return fieldsets.compare(
                root, self._as_sent(encoded, wanted), self._as_sent(new, wanted)
            )

        comparisons = _compare_by_version(managers, request.ref.kind, version, applier, compare)
        conflicts: dict[Manager, Set[Path]] = {}
        for other, owned in managers.items():
            compared = comparisons[owned.api_version]
            changed = owned.fields & (compared.modified | compared.added)
            if other != applier and changed:
                conflicts[other] = changed
        if conflicts and not request.manager.force:
            raise _new_conflict(conflicts)
        for other in [*managers]:
            if other != applier:
                _take_away(managers, other, comparisons[managers[other].api_version])
        if not managers[applier].fields:
            del managers[applier]
        new["metadata"] = new.get("metadata") or {}
        new["metadata"]["managedFields"] = _encode_entries(managers)
        return new

    def _read_managers(self, live: Obj | None, api_version: str) -> Managers:
        """Return what each manager has of an object, with what was changed past them."""
        if live is None:
            return {}
        meta = live["metadata"]
        managers = _decode_entries(_list_entries(live))
        known = self._known_objects.get(meta["uid"])
        if known is not None and known["metadata"]["resourceVersion"] == meta["resourceVersion"]:
            return managers
        stored = decoding.copy_decoded(schema.roots()[f"{live['apiVersion']}/{live['kind']}"], live)
        conversion.to_storage(stored)
        for subresource in ("", "status"):
            suite = Manager(_SUITE, api_version, subresource)
            managers = self._update(managers, known, stored, suite)
        return managers

    def _prune(self, new: Obj, managers: Managers, earlier: Owned, version: str) -> Obj:
        """Take out of an object what its applier has applied no longer and nobody else has."""
        kind = new["kind"]
        merged = self._as_sent(new, earlier.api_version)
        root = schema.roots()[f"{earlier.api_version}/{kind}"]
        last = fieldsets.add_named(root, earlier.fields)
        pruned = fieldsets.remove(root, merged, last) or {}
        # Who applies names the object, which nobody is noted for: its metadata stays.
        owned_by_version: dict[str, set[Path]] = {earlier.api_version: {("metadata", "name")}}
        for owned in managers.values():
            owned_by_version.setdefault(owned.api_version, set()).update(owned.fields)
        typed = {"kind": kind}
        for wanted, fields in owned_by_version.items():
            place = schema.roots().get(f"{wanted}/{kind}")
            if place is None:
                continue
            merged = self._as_sent(merged, wanted)
            pruned = self._as_sent({**typed, "apiVersion": merged["apiVersion"], **pruned}, wanted)
            gone = fieldsets.add_named(place, fieldsets.find_fields(place, merged))
            kept = fieldsets.add_named(place, fieldsets.find_fields(place, pruned))
            unowned = gone - kept - fieldsets.add_named(place, fields)
            pruned = fieldsets.remove(place, merged, unowned)
        merged, pruned = (self._as_sent(obj, earlier.api_version) for obj in (merged, pruned))
        gone = fieldsets.add_named(root, fieldsets.find_fields(root, merged))
        kept = fieldsets.add_named(root, fieldsets.find_fields(root, pruned))
        return self._as_sent(fieldsets.remove(root, merged, (gone - kept) & last), version)

    def _as_sent(self, obj: Obj, version: str) -> Obj:
        """Return an object that is written in a version; it may be the same."""
        if obj["apiVersion"] == version:
            return obj
        root = schema.roots()[f"{obj['apiVersion']}/{obj['kind']}"]
        stored = decoding.copy_decoded(root, obj)
        conversion.to_storage(stored)
        return encode_object(conversion.to_version(stored, version), self._forms, empties="null")

    def _update(
        self,
        managers: Managers,
        old: Obj | None,
        new: Obj,
        manager: Manager,
        *,
        is_sent: bool = False,
    ) -> Managers:
        """Return what each manager has after one has made a new object of an old one.

        ``is_sent``: in a request.
        """
        managers, version, kind = dict(managers), manager.api_version, new["kind"]
        before = old or {"apiVersion": new["apiVersion"], "kind": kind, "metadata": {}}

        def compare(root: str, wanted: str) -> Comparison:
            old_object, new_object = (conversion.as_version(o, wanted) for o in (before, new))
            return fieldsets.compare(root, old_object, new_object, self._forms)

        comparisons = _compare_by_version(managers, kind, version, manager, compare)
        if is_sent and not manager.subresource and old and all(map(_has_policies, (old, new))):
            for compared in comparisons.values():
                compared.modified.add(("spec", "devices"))
        for other in [*managers]:
            _take_away(managers, other, comparisons[managers[other].api_version])
        compared = comparisons[version]
        fields = (compared.modified | compared.added) - _UNOWNED
        if fields:
            earlier = managers.get(manager)
            fields |= earlier.fields if earlier is not None else set()
            managers[manager] = Owned(fields, version, self._clock.format_timestamp())
        return managers


def _list_entries(obj: Obj | None) -> list[Obj]:
    return [] if obj is None else obj["metadata"].get("managedFields") or []


def _without_entries(obj: Obj) -> Obj:
    ignored = ("managedFields", "generation")
    meta = {name: item for name, item in obj["metadata"].items() if name not in ignored}
    return {**obj, "metadata": meta}


def _identify(entry: Obj) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in ("manager", "operation", "apiVersion", "subresource"))


def _decode_entries(entries: Iterable[Obj]) -> Managers:
    """Return what entries of ``managedFields`` say; nothing if one of them cannot be read."""
    managers: Managers = {}
    try:
        for entry in entries:
            version, operation = entry["apiVersion"], entry["operation"]
            if operation not in ("Apply", "Update"):
                return {}
            manager = Manager(
                entry.get("manager", ""),
                version if operation == "Update" else "",
                entry.get("subresource", ""),
            )
            fields = {*fieldsets.decode_fields(entry.get("fieldsV1") or {})}
            managers[manager] = Owned(fields, version, entry.get("time") or "")
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
    return managers


def _encode_entries(managers: Managers) -> list[Obj]:
    """Return ``managedFields``, in its order (``sortEncodedManagedFields``)."""
    entries = []
    for manager, owned in managers.items():
        entry: Obj = {
            "manager": manager.name or "unknown",
            "operation": "Update" if manager.api_version else "Apply",
            "apiVersion": owned.api_version,
            "time": owned.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fieldsets.encode_fields(owned.fields),
        }
        if manager.subresource:
            entry["subresource"] = manager.subresource
        if not owned.time:
            del entry["time"]
        entries.append(entry)
    order = ("operation", "time", "manager", "apiVersion", "subresource")
    return sorted(entries, key=lambda entry: [entry.get(name, "") for name in order])


def _compare_by_version(
    managers: Managers,
    kind: str,
    version: str,
    manager: Manager,
    compare: Callable[[str, str], Comparison],
) -> dict[str, Comparison]:
    """Return version in which a manager wrote -> how objects differ in it.

    Without what the subresource leaves as it is (``GetResetFields``).

    Args:
        version: of the request.
        compare: from the type of the kind in a version, and the version, to what differs.
    """
    comparisons = {}
    for wanted in {version, *(owned.api_version for owned in managers.values())}:
        root = schema.roots().get(f"{wanted}/{kind}")
        compared = Comparison() if root is None else compare(root, wanted)
        comparisons[wanted] = Comparison(
            *(
                {path for path in paths if path and not _is_reset(kind, manager, path)}
                for paths in (compared.removed, compared.modified, compared.added)
            )
        )
    return comparisons


def _has_policies(obj: Obj) -> bool:
    """Return whether devices of a slice have request policies.

    Go keeps the text of a quantity that it has read or written where there is a pointer to it; with
    it no list of devices that is sent equals the one that there was.
    """
    capacities = (
        capacity
        for device in conversion.list_devices(obj)
        for capacity in (device.get("capacity") or {}).values()
    )
    return any(capacity.get("requestPolicy") for capacity in capacities)


def _is_reset(kind: str, manager: Manager, path: Path) -> bool:
    if not manager.subresource:
        return path[0] == "status"
    if KINDS[kind].group == DRA_GROUP:
        return path[0] in ("spec", "metadata")
    return path[0] == "spec" or path[:2] in _STATUS_RESETS.get(kind, ())


def _take_away(managers: Managers, manager: Manager, compared: Comparison) -> None:
    """Take from a manager what was changed; one that has nothing any more goes."""
    owned = managers[manager]
    fields = owned.fields - compared.modified - compared.added - compared.removed
    managers[manager] = replace(owned, fields=fields)
    if not fields:
        del managers[manager]


def _list_applied_fields(request: Request) -> set[Path]:
    """Return what a request applies: of the status, or of all else."""
    root = schema.roots()[f"{request.ref.api_version}/{request.ref.kind}"]
    assert request.manager is not None
    applier = Manager(request.manager.name, "", request.subresource)
    fields = fieldsets.find_fields(root, request.body) - _UNOWNED
    return {path for path in fields if not _is_reset(request.ref.kind, applier, path)}


def _new_conflict(conflicts: Mapping[Manager, Set[Path]]) -> ApiError:
    """Return the 409 of ``NewConflictError`` of apimachinery's managedfields."""
    places = {owner.describe(): [*map(_format_path, paths)] for owner, paths in conflicts.items()}
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
        f".{segment}" if isinstance(segment, str) else f"[{fieldsets.format_key(segment)}]"
        for segment in path
    )
