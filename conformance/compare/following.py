"""A snapshot that follows its cluster: what a watch tells changes it, between the questions.

Objects are kept by kind and name, so that an event costs what it is about; the snapshot is made of
them when a question comes after a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.compare.case import Key
from conformance.compare.evidence import Object, has_ended, key_of
from conformance.seam.pods import reduced_pod
from reference_allocator.api.reading import (
    InputError,
    expect_object,
    read_string,
    refuse_unknown_keys,
    required_child,
)
from reference_allocator.snapshot import Snapshot

_FIELDS: Final = {
    "Node": "nodes",
    "ResourceSlice": "slices",
    "DeviceClass": "device_classes",
    "ResourceClaim": "claims",
    "ResourceClaimTemplate": "templates",
    "Pod": "pods",
}
"""Kind -> field of a snapshot; a claim that has devices is in ``allocated``."""

_TYPES: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")

_Change = tuple[str, Key, Object | None]
"""Kind and name of an object, and what it is now; None: it is gone."""


class FollowedSnapshot:
    """A snapshot and what has changed since. Not thread-safe."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._base = snapshot
        self._objects: dict[str, dict[Key, Object]] = {
            kind: {key_of(item): item for item in getattr(snapshot, field)}
            for kind, field in _FIELDS.items()
        }
        for item in snapshot.allocated:
            self._objects["ResourceClaim"][key_of(item)] = item
        self._current: Snapshot | None = snapshot

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot as it is now."""
        if self._current is None:
            by_field = {field: self._objects[kind] for kind, field in _FIELDS.items()}
            claims = list(by_field.pop("claims").values())
            lists: dict[str, Any] = {
                field: tuple(kept.values()) for field, kept in by_field.items()
            }
            lists["claims"] = tuple(item for item in claims if not _is_allocated(item))
            lists["allocated"] = tuple(item for item in claims if _is_allocated(item))
            self._current = replace(self._base, **lists)
        return self._current

    def apply(self, events: Iterable[Mapping[str, Any]]) -> int:
        """Change it by watch events, all of them or none; return how many objects changed.

        Raises InputError: one is none, or is about an object that cannot be used; names it.
        """
        changes: list[_Change] = []
        for index, event in enumerate(events):
            try:
                changes += _read_event(event)
            except InputError as error:
                raise error.with_parent("events", index) from None
        for kind, key, obj in changes:
            if obj is None:
                self._objects[kind].pop(key, None)
            else:
                self._objects[kind][key] = obj
        if changes:
            self._current = None
        return len(changes)


def _read_event(event: Mapping[str, Any]) -> list[_Change]:
    """Return what an event changes: one object, or nothing."""
    refuse_unknown_keys(event, ("type", "object"))
    kind_of_event = read_string(event, "type")
    if kind_of_event not in _TYPES:
        raise InputError(f"expected one of {', '.join(_TYPES)}", "type")
    if kind_of_event == "BOOKMARK":
        return []
    # Imported here: it knows an API server and its clients, which a snapshot does not need.
    from conformance.compare.gathering import UnreadError, prepare_object

    obj = required_child(event, "object", expect_object)
    kind = read_string(obj, "kind")
    if kind not in _FIELDS:
        raise InputError(
            f"{kind or 'what it is'} is not followed; {', '.join(_FIELDS)} are, slices with the"
            " taints of DeviceTaintRules",
            *("object", "kind"),
        )
    try:
        prepared = prepare_object(dict(obj))
    except InputError as error:
        raise error.with_parent("object") from None
    except UnreadError as error:
        raise InputError(str(error), "object") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"has not the form of a {kind}", "object") from None
    is_gone = kind_of_event == "DELETED"
    if kind == "Pod":  # One that has ended, or has nothing to do with devices, is not kept.
        is_gone |= has_ended(prepared) or reduced_pod(prepared, ()) is None
    return [(kind, key_of(prepared), None if is_gone else prepared)]


def _is_allocated(claim: Object) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))
