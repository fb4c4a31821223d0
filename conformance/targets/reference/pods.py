"""Questions about pods that the controllers, the scheduler and the kubelet ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.targets.base import Obj
from conformance.targets.reference.store import uid_of


def is_finished(pod: Mapping[str, Any]) -> bool:
    """The pod ran to its end."""
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def is_deleted(obj: Mapping[str, Any]) -> bool:
    """Deletion was asked for."""
    return "deletionTimestamp" in obj["metadata"]


def will_not_run(pod: Mapping[str, Any]) -> bool:
    """The pod is done, or was deleted before it got a node (``isPodDone`` upstream)."""
    return is_finished(pod) or (is_deleted(pod) and not pod["spec"].get("nodeName"))


def claim_name(pod: Mapping[str, Any], pod_claim: Mapping[str, Any]) -> str | None:
    """The ResourceClaim behind an entry of ``spec.resourceClaims``, None as long as it has none."""
    direct = pod_claim.get("resourceClaimName")
    if direct is not None:
        return str(direct)
    for status in claim_statuses(pod):
        if status["name"] == pod_claim["name"]:
            name: str | None = status.get("resourceClaimName")
            return name
    return None


def claim_statuses(pod: Mapping[str, Any]) -> list[Obj]:
    """What is known of the claims that are made for the pod."""
    return pod["status"].get("resourceClaimStatuses") or []


def is_reserved(claim: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """The pod is in ``status.reservedFor``."""
    return any(user["uid"] == uid_of(pod) for user in claim["status"].get("reservedFor") or [])


def reservation(pod: Mapping[str, Any]) -> Obj:
    """The entry for ``status.reservedFor``."""
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid_of(pod)}


def is_controlled_by(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """``owner`` is the object's controller."""
    return any(
        reference["uid"] == uid_of(owner) and reference.get("controller")
        for reference in obj["metadata"].get("ownerReferences") or []
    )
