"""The object store: what etcd and the generic registry of an API server do.

Stored objects are values: they are replaced, never changed in place, so that whoever holds one
holds a consistent past state. Callers that want to change an object work on a :func:`clone`.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from kube.errors import ApiError, Cause
from kube.values import Obj
from kubesim.clock import VirtualClock
from kubesim.resources import KINDS, Kind

T = TypeVar("T")

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What names are generated from (k8s.io/apimachinery/pkg/util/rand): no vowels, no words."""

_SUFFIX_LENGTH: Final = 5
_MAX_BASE: Final = 63 - _SUFFIX_LENGTH
_CONTAINERS: Final = frozenset({dict, list})


def clone(value: T) -> T:
    """Return a deep copy of JSON (much faster than ``copy.deepcopy``, which expects anything)."""
    # Most values are scalars: to look at their type here saves a call for each.
    if isinstance(value, dict):
        return {  # type: ignore[return-value]
            key: clone(item) if type(item) in _CONTAINERS else item for key, item in value.items()
        }
    if isinstance(value, list):
        return [  # type: ignore[return-value]
            clone(item) if type(item) in _CONTAINERS else item for item in value
        ]
    return value


def name_of(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Mapping[str, Any]) -> str:
    """Return ``metadata.namespace``, empty for a cluster-scoped object."""
    return str(obj["metadata"].get("namespace", ""))


def uid_of(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["uid"])


def retain_items(holder: Obj, field: str, is_kept: Callable[[Any], bool]) -> None:
    """Leave in a list what is wanted, in place; without any the field goes."""
    kept_items = [item for item in holder.get(field) or [] if is_kept(item)]
    if kept_items:
        holder[field] = kept_items
    else:
        holder.pop(field, None)


def not_found(kind: Kind, name: str) -> ApiError:
    """Return 404, in the words of ``apierrors.NewNotFound``."""
    return new_refusal(404, "NotFound", kind, name, f'{kind.resource} "{name}" not found')


def new_refusal(
    code: int, reason: str, kind: Kind, name: str, message: str, *causes: Cause
) -> ApiError:
    """Return a refusal whose details name a resource and an object of it."""
    named = {"name": name, "group": kind.group, "kind": kind.plural}
    details = {field: value for field, value in named.items() if value}
    return ApiError(code, reason, message, causes, details)


def new_forbidden(obj: Mapping[str, Any], why: str, *causes: Cause) -> ApiError:
    """Return 403 for a new or changed object, in the words of ``apierrors.NewForbidden``."""
    name, kind = obj["metadata"].get("name") or "", KINDS[obj["kind"]]
    text = f'{kind.resource} "{name}" is forbidden: {why}'
    return new_refusal(403, "Forbidden", kind, name, text, *causes)


def _desired_state(obj: Obj) -> Any:
    """Return what ``metadata.generation`` counts changes of: the spec, but not a pod's binding."""
    spec = obj.get("spec")
    if obj["kind"] == "Pod" and spec:
        return {field: value for field, value in spec.items() if field != "nodeName"}
    return spec


class Identity:
    """Source of uids and generated names: random to look at, and the same in every run.

    Each depends only on the seed, the object's kind, namespace and name, and how often that name
    was used before, so that scenarios that run side by side cannot change each other's.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._uses: dict[tuple[str, ...], int] = {}

    def generate_uid(self, kind: str, namespace: str, name: str) -> str:
        """Return a version 4 uid for a new object; another one for each incarnation of a name."""
        return str(uuid.UUID(bytes=self._digest("uid", kind, namespace, name)[:16], version=4))

    def generate_name(self, kind: str, namespace: str, base: str) -> str:
        """Return ``generateName`` plus five characters, cut to 63 as the API server does."""
        digest = self._digest("name", kind, namespace, base)
        suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])
        return base[:_MAX_BASE] + suffix

    def _digest(self, *key: str) -> bytes:
        count = self._uses.get(key, 0)
        self._uses[key] = count + 1
        text = "\0".join((str(self._seed), *key, str(count)))
        return hashlib.sha256(text.encode()).digest()


class Store:
    """Objects by kind, namespace and name, with a counter that moves at every change."""

    def __init__(self, clock: VirtualClock, identity: Identity) -> None:
        self._clock = clock
        self._identity = identity
        self._objects: dict[str, dict[tuple[str, str], Obj]] = {kind: {} for kind in KINDS}
        self._by_uid: dict[str, Obj] = {}
        self._changed: dict[str, int] = dict.fromkeys(KINDS, 0)
        self._listeners: dict[str, list[Callable[[str, Obj], None]]] = {}
        self.is_dry = False
        self.revision = 0

    @property
    def prefix(self) -> str:
        """What keys begin with in etcd, as errors have it: nothing in a dry run."""
        return "" if self.is_dry else "/registry"

    def seconds_since(self, timestamp: str) -> int:
        """Return how many seconds ago a timestamp was."""
        return int(self._clock.now - self._clock.seconds_of(timestamp))

    def listen(self, kind: str, listener: Callable[[str, Obj], None]) -> None:
        """Call it with MODIFIED or DELETED and the object at every change of this kind."""
        self._listeners.setdefault(kind, []).append(listener)

    def unlisten(self, kind: str, listener: Callable[[str, Obj], None]) -> None:
        self._listeners[kind].remove(listener)

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Store nothing of what is stored meanwhile."""
        self.is_dry = True
        try:
            yield
        finally:
            self.is_dry = False

    def revision_of_kind(self, kind: str) -> int:
        """Return the revision at which an object of this kind changed last."""
        return self._changed[kind]

    def newest_revision(self, kinds: Iterable[str]) -> int:
        """Return the revision at which an object of any of these kinds changed last."""
        return max(map(self._changed.__getitem__, kinds))

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        """Return the stored object (not to be changed), or None."""
        return self._objects[kind].get((namespace, name))

    def by_uid(self, uid: str) -> Obj | None:
        return self._by_uid.get(uid)

    def all(self, kind: str, namespace: str | None = None) -> list[Obj]:
        """Return objects of a kind in order of creation, of one namespace or of all."""
        objects = self._objects[kind]
        if namespace is None:
            return list(objects.values())
        return [
            obj for (object_namespace, _), obj in objects.items() if object_namespace == namespace
        ]

    def iterate_objects(self) -> Iterator[Obj]:
        """Yield every object, kinds in the order of :data:`KINDS`."""
        for objects in self._objects.values():
            yield from list(objects.values())

    def add(self, obj: Obj) -> Obj:
        """Store a new object: gives it uid, creation time, version and a generated name.

        Takes over ``obj``. Raises:
            ApiError: 409 AlreadyExists.
        """
        kind = KINDS[obj["kind"]]
        meta = obj["metadata"]
        namespace = namespace_of(obj)
        if not meta.get("name"):
            name = self._identity.generate_name(kind.name, namespace, meta["generateName"])
            while (namespace, name) in self._objects[kind.name]:
                name = self._identity.generate_name(kind.name, namespace, meta["generateName"])
            meta["name"] = name
        name = name_of(obj)
        if (namespace, name) in self._objects[kind.name]:
            message = f'{kind.resource} "{name}" already exists'
            if "deletionTimestamp" in self._objects[kind.name][namespace, name]["metadata"]:
                message = f"object is being deleted: {message}"
            raise new_refusal(409, "AlreadyExists", kind, name, message)
        meta["uid"] = self._identity.generate_uid(kind.name, namespace, name)
        meta["creationTimestamp"] = self._clock.format_timestamp()
        if kind.generation:
            meta["generation"] = 1
        self._put(kind, obj)
        return obj

    def replace(self, new: Obj) -> Obj:
        """Store a changed object; one that awaits deletion and has no finalizer left goes.

        Takes over ``new``, which shares nothing with what is stored: watches hold that, too.
        Returns what is stored, or was stored last.
        """
        kind = KINDS[new["kind"]]
        old = self._objects[kind.name][namespace_of(new), name_of(new)]
        # Like etcd3's GuaranteedUpdate: what changes nothing has no revision and no event.
        if new == old:
            return old
        meta = new["metadata"]
        if kind.generation and _desired_state(new) != _desired_state(old):
            meta["generation"] = meta.get("generation", 1) + 1
        if not meta.get("finalizers"):
            meta.pop("finalizers", None)
            if "deletionTimestamp" in meta and not meta.get("deletionGracePeriodSeconds"):
                self.remove(old)
                return new
        self._put(kind, new)
        return new

    def modify(self, obj: Mapping[str, Any], change: Callable[[Obj], None]) -> Obj:
        """Apply ``change`` to a copy of what is stored now under the object's name."""
        new = clone(self._objects[obj["kind"]][namespace_of(obj), name_of(obj)])
        change(new)
        return self.replace(new)

    def remove(self, obj: Mapping[str, Any]) -> None:
        if self.is_dry:
            return
        kind = obj["kind"]
        removed = self._objects[kind].pop((namespace_of(obj), name_of(obj)), None)
        if removed is not None:
            del self._by_uid[uid_of(removed)]
            self.revision += 1
            self._changed[kind] = self.revision
            # As etcd3's watcher: a deletion's event has the version of the deletion.
            version = {"resourceVersion": str(self.revision)}
            last_state = {**removed, "metadata": {**removed["metadata"], **version}}
            self._notify_listeners("DELETED", last_state)

    def _put(self, kind: Kind, obj: Obj) -> None:
        if self.is_dry:
            return
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        self._changed[kind.name] = self.revision
        self._objects[kind.name][namespace_of(obj), name_of(obj)] = obj
        self._by_uid[uid_of(obj)] = obj
        self._notify_listeners("MODIFIED", obj)

    def _notify_listeners(self, change: str, obj: Obj) -> None:
        for listener in self._listeners.get(obj["kind"], ()):
            listener(change, obj)
