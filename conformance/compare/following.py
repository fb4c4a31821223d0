"""A snapshot that follows its cluster: what a watch tells changes it, between the questions.

Objects are kept by kind and name, so that an event costs what it is about. A question about a pod
and new nodes is answered by a part of them; the whole is made of them where a question needs that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

from conformance.compare.case import Case, Key, named_keys
from conformance.compare.evidence import (
    Object,
    has_ended,
    key_of,
    mapping_field,
    name_of,
)
from conformance.compare.node_errors import NodeErrors
from conformance.compare.related import Relations, node_of, pool_of
from conformance.seam.pods import reduced_pod
from kube.slices import is_allocated
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
        self._next_place = count()
        self._places = {
            (kind, key): next(self._next_place)
            for kind, kept in self._objects.items()
            for key in kept
        }
        self._relations = Relations(self._objects)
        self._errors: NodeErrors | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot as it is now."""
        if self._current is None:
            by_field = {field: self._objects[kind] for kind, field in _FIELDS.items()}
            claims = list(by_field.pop("claims").values())
            lists: dict[str, Any] = {
                field: tuple(kept.values()) for field, kept in by_field.items()
            }
            self._current = replace(self._base, **lists, **_sort_claims(claims))
        return self._current

    def select_part(self, name: str, added: Sequence[Object]) -> Snapshot | None:
        """Return what an answer about a pod and new nodes depends on, without other nodes.

        That is the pod with its claims and templates, the classes, and the pools that the new nodes
        can have. Errors on other nodes are up to `may_end_attempt`.

        Args:
            name: ``namespace/name`` of the pod.
            added: new Nodes and their ResourceSlices.

        None: it depends on more, as the pod has devices already, or other nodes are changed by what
        is added; or there is no such pod, or no new node, or something is added that is there.
        """
        namespace, _, bare = name.partition("/")
        pod = self._objects["Pod"].get((namespace, bare))
        nodes = {name_of(obj) for obj in added if obj.get("kind") == "Node"}
        slices = [obj for obj in added if obj.get("kind") == "ResourceSlice"]
        if pod is None or not nodes or any(map(self._is_there, added)):
            return None
        if any(node_of(item) not in nodes or self._has_pool_of(item) for item in slices):
            return None
        related = self._relations
        uid = str(mapping_field(pod, "metadata").get("uid"))
        claims = named_keys(pod) | related.claims_of_owner.find(uid)
        if any(map(is_allocated, self._select("ResourceClaim", claims))):
            return None
        pools = sorted(set[Key]().union(*map(related.pools_of_node, ("", *nodes))))
        claims = claims.union(*map(related.claims_of_pool.find, pools))
        entries = mapping_field(pod, "spec").get("resourceClaims") or ()
        templates = {(namespace, str(item.get("resourceClaimTemplateName"))) for item in entries}
        pods = {key_of(pod)}.union(*map(related.pods_of_node.find, nodes))
        published = set[Key]().union(*map(related.slices_of_pool.find, pools))
        return replace(
            self._base,
            slices=tuple(self._select("ResourceSlice", published)),
            device_classes=tuple(self._objects["DeviceClass"].values()),
            nodes=(),
            pods=tuple(self._select("Pod", pods)),
            templates=tuple(self._select("ResourceClaimTemplate", templates)),
            **_sort_claims(self._select("ResourceClaim", claims)),
        )

    def may_end_attempt(self, case: Case) -> bool:
        """Return whether an error on a node may end the scheduler's attempt (`NodeErrors`)."""
        if self._errors is None:
            self._errors = NodeErrors(self.snapshot, self._objects, self._relations)
        return self._errors.may_end_attempt(case)

    def _is_there(self, obj: Object) -> bool:
        """Return whether there is a Node or ResourceSlice of the same name."""
        return ("", name_of(obj)) in self._objects.get(str(obj.get("kind")), ())

    def _has_pool_of(self, item: Object) -> bool:
        """Return whether the pool of a slice has slices already."""
        return bool(self._relations.slices_of_pool.find(pool_of(item)))

    def _select(self, kind: str, keys: Iterable[Key]) -> list[Object]:
        """Return the objects of these names that are there, in the order of the snapshot.

        Of the claims of a pod the order decides which error is met, or none.
        """
        kept = self._objects[kind]
        there = sorted((self._places[kind, key], key) for key in keys if key in kept)
        return [kept[key] for _, key in there]

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
        changed = sum(self._change_object(kind, key, obj) for kind, key, obj in changes)
        if changed:
            self._current = None
        return changed

    def _change_object(self, kind: str, key: Key, obj: Object | None) -> bool:
        """Return whether the object is another now, or no longer there."""
        before = self._objects[kind].get(key)
        if before == obj:
            return False
        if obj is None:
            self._objects[kind].pop(key, None)
            self._places.pop((kind, key), None)
        else:
            self._objects[kind][key] = obj
            self._places.setdefault((kind, key), next(self._next_place))
        self._relations.change(kind, key, before, obj)
        if self._errors is not None:
            self._errors.record_change(kind, key, before, obj)
        return True


def _read_event(event: Mapping[str, Any]) -> list[_Change]:
    """Return what an event changes: one object, or nothing."""
    refuse_unknown_keys(event, ("type", "object"))
    kind_of_event = read_string(event, "type")
    if kind_of_event not in _TYPES:
        raise InputError(f"expected one of {', '.join(_TYPES)}", "type")
    if kind_of_event == "BOOKMARK":
        return []
    # Imported here: it knows an API server and its clients, which a snapshot does not need.
    from conformance.compare.gathering import UnreadError, identify_object, prepare_object

    obj = required_child(event, "object", expect_object)
    kind = read_string(obj, "kind")
    if kind not in _FIELDS:
        raise InputError(
            f"{kind or 'what it is'} is not followed; {', '.join(_FIELDS)} are, slices with the"
            " taints of DeviceTaintRules",
            *("object", "kind"),
        )
    is_gone = kind_of_event == "DELETED"
    try:  # Of an object that is gone only the name counts.
        prepared = (identify_object if is_gone else prepare_object)(dict(obj))
    except InputError as error:
        raise error.with_parent("object") from None
    except UnreadError as error:
        raise InputError(str(error), "object") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"has not the form of a {kind}", "object") from None
    if (
        kind == "Pod" and not is_gone
    ):  # One that has ended, or has nothing to do with devices, is not kept.
        is_gone = has_ended(prepared) or reduced_pod(prepared, ()) is None
    return [(kind, key_of(prepared), None if is_gone else prepared)]


def _sort_claims(claims: Iterable[Object]) -> dict[str, Any]:
    """Return the two fields of a snapshot that have claims: without devices, and with some."""
    lists: dict[str, list[Object]] = {"claims": [], "allocated": []}
    for claim in claims:
        lists["allocated" if is_allocated(claim) else "claims"].append(claim)
    return {field: tuple(items) for field, items in lists.items()}
