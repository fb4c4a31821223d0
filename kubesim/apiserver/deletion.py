"""Deletion: of an object at once or later, and what that means for new objects of a namespace.

Follows ``BeforeDelete`` and ``deletionFinalizersForGarbageCollection`` of k8s.io/apiserver/pkg/
registry, but that Jobs that are deleted without a policy do not orphan their pods: nobody here
asks so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kube.errors import Cause
from kube.values import Obj
from kubesim.clock import VirtualClock
from kubesim.resources import KINDS, Kind
from kubesim.store import Store, namespace_of, new_forbidden, not_found

ORPHAN: Final = "orphan"
"""Finalizer: what belongs to the object must lose it as an owner before it goes."""

FOREGROUND: Final = "foregroundDeletion"  # Finalizer: what belongs to the object must go before it.

_FINALIZERS: Final = {"Background": [], "Foreground": [FOREGROUND], "Orphan": [ORPHAN]}


def finalizers_after_deletion(obj: Obj, propagation: str | None) -> list[str]:
    """Return an object's finalizers once it is deleted; without a policy they stay as they are."""
    present: list[str] = obj["metadata"].get("finalizers") or []
    if propagation is None:
        return present
    return [
        finalizer for finalizer in present if finalizer not in {FOREGROUND, ORPHAN}
    ] + _FINALIZERS[propagation]


def mark_deleted(obj: Obj, grace: int, moment: str, new_finalizers: list[str]) -> None:
    """Note that an object is being deleted. ``grace``: seconds that it has."""
    meta = obj["metadata"]
    if "generation" in meta and "deletionTimestamp" not in meta:
        meta["generation"] += 1
    meta["deletionTimestamp"] = moment
    meta["deletionGracePeriodSeconds"] = grace
    meta["finalizers"] = new_finalizers
    if obj["kind"] == "Namespace":
        del meta["deletionGracePeriodSeconds"]
        meta["finalizers"] = ["kubernetes"]
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}


def pod_grace(pod: Obj, requested_grace: int | None) -> int:
    """Return the seconds of ``podStrategy.CheckGracefulDelete``: 0 for a pod that does not run."""
    phase = (pod.get("status") or {}).get("phase")
    if not pod["spec"].get("nodeName") or phase in {"Failed", "Succeeded"}:
        return 0
    grace = (
        pod["spec"]["terminationGracePeriodSeconds"] if requested_grace is None else requested_grace
    )
    return 1 if grace < 0 else int(grace)


def delete_object(
    store: Store, clock: VirtualClock, obj: Obj, grace_seconds: int | None, propagation: str | None
) -> Obj:
    """Delete a stored object, or mark it (``BeforeDelete`` of the generic registry).

    Returns it as it is then, or was last.
    """
    meta, new_finalizers = obj["metadata"], finalizers_after_deletion(obj, propagation)
    grace = pod_grace(obj, grace_seconds) if obj["kind"] == "Pod" else 0
    if "deletionTimestamp" in meta and grace >= meta.get("deletionGracePeriodSeconds", 0):
        if new_finalizers == (meta.get("finalizers") or []):
            return obj
        return store.modify(obj, lambda new: new["metadata"].update(finalizers=new_finalizers))
    if not grace and not new_finalizers and obj["kind"] != "Namespace":
        if obj["kind"] == "Pod":  # of which it is noted before
            moment = clock.format_timestamp()
            obj = store.modify(obj, lambda new: mark_deleted(new, 0, moment, []))
        store.remove(obj)
        return obj
    if grace:
        clock.wake_in(grace)
    moment = clock.format_timestamp(grace)
    return store.modify(obj, lambda new: mark_deleted(new, grace, moment, new_finalizers))


def namespace_labels(store: Store, kind: Kind, obj: Obj) -> Mapping[str, str]:
    """Return the labels of a new object's namespace (the admission plugin NamespaceLifecycle).

    Raises ApiError: 404, there is no such namespace; 403, it is being deleted.
    """
    if not kind.namespaced:
        return {}
    namespace = namespace_of(obj)
    stored_namespace = store.get("Namespace", "", namespace)
    if stored_namespace is None:
        raise not_found(KINDS["Namespace"], namespace)
    if "deletionTimestamp" in stored_namespace["metadata"]:
        raise new_forbidden(
            obj,
            f"unable to create new content in namespace {namespace} because it is being terminated",
            Cause(
                "metadata.namespace",
                "NamespaceTerminating",
                f"namespace {namespace} is being terminated",
            ),
        )
    labels: Mapping[str, str] = stored_namespace["metadata"].get("labels") or {}
    return labels
