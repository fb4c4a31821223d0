"""How an API server takes in a new object, as far as that needs no cluster.

So an object of a file can be checked by itself.
"""

from __future__ import annotations

from typing import Final

from kube.values import Obj
from kubesim.apiserver import conversion, decoding, defaulting
from kubesim.clock import VirtualClock
from kubesim.resources import Kind
from reference_allocator.api import schema

SYSTEM_METADATA: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
"""Fields of ``metadata`` that are the server's alone."""


def complete_new(kind: Kind, decoded: Obj, default_namespace: str, clock: VirtualClock) -> Obj:
    """Return a new object in its stored version, with its namespace and the server's defaults.

    Args:
        decoded: as `decoding.decode_object` returns it; taken over.
        clock: what time it is.
    """
    new, sent_version = decoded, decoded["apiVersion"]
    conversion.to_storage(new)
    meta = new["metadata"] = {
        field: value
        for field, value in (new.get("metadata") or {}).items()
        if value is not None and (field not in SYSTEM_METADATA or _keeps(kind, field))
    }
    if kind.namespaced:
        meta.setdefault("namespace", default_namespace)
    else:
        meta.pop("namespace", None)
    if kind.name == "Node":  # of which a client says everything
        new["status"] = new.get("status") or {}
    else:
        new.pop("status", None)
    defaulting.apply_defaults(new, clock, submitted_as=sent_version)
    return new


def _keeps(kind: Kind, field: str) -> bool:
    """Return whether a new object keeps what was sent: the generation of kinds that count none."""
    return field == "generation" and not kind.generation


def with_generated_name(new: Obj) -> Obj:
    """Return an object with a name such as the server makes, if it asks for one."""
    meta = new["metadata"]
    if meta.get("name") or not meta.get("generateName"):
        return new
    return {**new, "metadata": {**meta, "name": f"{meta['generateName']}00000"}}


def take_in(kind: Kind, obj: Obj) -> Obj:
    """Return an object of a file as a server would store it, if it were taken at all.

    ``obj``: its fields all have the right types, and its version is served.
    """
    root = f"{obj['apiVersion']}/{kind.name}"
    decoded = decoding.copy_decoded(schema.roots()[root], obj)
    return with_generated_name(complete_new(kind, decoded, "default", VirtualClock()))
