"""A pod as a snapshot has it, of either target: what decides where it may run, and its claims.

Snapshots leave the cluster, so env, args, images, volumes and annotations are left out. Of
containers there is what they ask for, where that may be devices (extended resources).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube.values import KUBE_SCHEDULER, Obj
from reference_allocator.extended import is_extended_resource

META = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "finalizers")
_SPEC = (
    "nodeName",
    "nodeSelector",
    "tolerations",
    "schedulingGates",
    "schedulingGroup",
    "resourceClaims",
)
_CONTAINERS = ("initContainers", "containers")
_STATUS = ("phase", "resourceClaimStatuses", "extendedResourceClaimStatus")


def pick(part: Mapping[str, Any] | None, *fields: str) -> Obj:
    return {field: part[field] for field in fields if part.get(field)} if part else {}


def reduced_pod(pod: Obj, reserved: Any) -> Obj | None:
    """What decides where a pod may run and which devices it has; None for one without any."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    containers = _requesting_containers(spec)
    has = spec.get("resourceClaims") or status.get("extendedResourceClaimStatus") or containers
    if not has and pod["metadata"].get("uid") not in reserved:
        return None
    kept_spec = pick(spec, *_SPEC)
    if spec.get("schedulerName") not in (None, KUBE_SCHEDULER):
        kept_spec["schedulerName"] = spec["schedulerName"]
    affinity: Mapping[str, Any] = pick(spec.get("affinity"), "nodeAffinity")
    if affinity:
        kept_spec["affinity"] = affinity
    kept_spec |= containers
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


def _requesting_containers(spec: Obj) -> Obj:
    """Return what the containers ask for, if one asks for an extended resource; else nothing.

    All that they ask for, in their order: the names of a claim's requests follow from it.
    """
    reduced = {
        field: [_reduced_container(container) for container in spec.get(field) or ()]
        for field in _CONTAINERS
    }
    asked = (
        name
        for containers in reduced.values()
        for container in containers
        for name in container.get("resources", {}).get("requests", {})
    )
    if not any(map(is_extended_resource, asked)):
        return {}
    return {field: containers for field, containers in reduced.items() if containers}


def _reduced_container(container: Obj) -> Obj:
    """Return what a container asks for; what it is limited to, it asks for (API defaults)."""
    resources = container.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    kept = pick(container, "name", "restartPolicy")
    return {**kept, "resources": {"requests": requests}} if requests else kept
