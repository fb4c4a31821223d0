"""A pod as a snapshot has it, of either target: what decides where it may run, and its claims.

Snapshots leave the cluster, so env, args, images, volumes and annotations are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube.values import Obj

META = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "finalizers")
_SPEC = ("nodeName", "nodeSelector", "tolerations", "schedulingGates", "resourceClaims")
_STATUS = ("phase", "resourceClaimStatuses", "extendedResourceClaimStatus")


def pick(part: Mapping[str, Any] | None, *fields: str) -> Obj:
    return {field: part[field] for field in fields if part.get(field)} if part else {}


def reduced_pod(pod: Obj, reserved: Any) -> Obj | None:
    """What decides where a pod may run and which claims it has; None for one without claims."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    has = spec.get("resourceClaims") or status.get("extendedResourceClaimStatus")
    if not has and pod["metadata"].get("uid") not in reserved:
        return None
    kept_spec = pick(spec, *_SPEC)
    affinity: Mapping[str, Any] = pick(spec.get("affinity"), "nodeAffinity")
    if affinity:
        kept_spec["affinity"] = affinity
    kept_status = pick(status, *_STATUS)
    scheduled = [
        pick(item, "type", "status", "reason", "message")
        for item in status.get("conditions") or ()
        if item.get("type") == "PodScheduled"
    ]
    if scheduled:
        kept_status["conditions"] = scheduled
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pick(pod["metadata"], *META),
        "spec": kept_spec,
        "status": kept_status,
    }
