"""What a deletion makes of an object that is not gone at once.

Follows ``BeforeDelete`` and ``deletionFinalizersForGarbageCollection`` of k8s.io/apiserver/pkg/
registry, but that Jobs that are deleted without a policy do not orphan their pods: nobody here
asks so.
"""

from __future__ import annotations

from typing import Final

from conformance.targets.base import Obj

ORPHAN: Final = "orphan"
"""Finalizer: what belongs to the object must lose it as an owner before it goes."""

FOREGROUND: Final = "foregroundDeletion"
"""Finalizer: what belongs to the object must go before it."""

_FINALIZERS: Final = {"Background": [], "Foreground": [FOREGROUND], "Orphan": [ORPHAN]}


def finalizers(obj: Obj, propagation: str | None) -> list[str]:
    """An object's finalizers once it is deleted; without a policy they stay as they are."""
    present: list[str] = obj["metadata"].get("finalizers") or []
    if propagation is None:
        return present
    return [one for one in present if one not in {FOREGROUND, ORPHAN}] + _FINALIZERS[propagation]


def mark(obj: Obj, grace: int, moment: str, kept: list[str]) -> None:
    """Note that an object is being deleted.

    Args:
        obj: changed in place.
        grace: seconds that it has.
        moment: when they are over.
        kept: its finalizers.
    """
    meta = obj["metadata"]
    meta["deletionTimestamp"] = moment
    meta["deletionGracePeriodSeconds"] = grace
    meta["finalizers"] = kept
    if "generation" in meta:
        meta["generation"] += 1
    if obj["kind"] == "Namespace":
        del meta["deletionGracePeriodSeconds"]
        meta["finalizers"] = ["kubernetes"]
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}


def pod_grace(pod: Obj, wanted: int | None) -> int:
    """Seconds (``podStrategy.CheckGracefulDelete``): none for a pod that does not run."""
    phase = (pod.get("status") or {}).get("phase")
    if not pod["spec"].get("nodeName") or phase in {"Failed", "Succeeded"}:
        return 0
    grace = pod["spec"]["terminationGracePeriodSeconds"] if wanted is None else wanted
    return 1 if grace < 0 else int(grace)
