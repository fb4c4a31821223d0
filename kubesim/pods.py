"""Questions about pods that the controllers, the scheduler and the kubelet ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kube.values import Obj
from kubesim.store import uid_of
from reference_allocator.api.quantity import parse_quantity

GROUPS_API: Final = "scheduling.k8s.io"
"""The API group of PodGroups."""


def is_finished(pod: Mapping[str, Any]) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def is_deleted(obj: Mapping[str, Any]) -> bool:
    """Return whether deletion was asked for."""
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod counts for its controller (``IsPodActive``): not done, not deleted."""
    return not is_finished(pod) and not is_deleted(pod)


def will_not_run(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is done, or was deleted before it got a node (``isPodDone``)."""
    return is_finished(pod) or (is_deleted(pod) and not pod["spec"].get("nodeName"))


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def priority_of(pod: Mapping[str, Any]) -> int:
    """Return ``spec.priority``, 0 as long as admission has not set it."""
    return int(pod["spec"].get("priority") or 0)


def list_containers(spec: Mapping[str, Any]) -> list[Obj]:
    """Return init containers, then containers, of a pod's spec."""
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def sum_requests(pod: Mapping[str, Any]) -> Counter[str]:
    """Return what the containers of a pod ask for at most at any time, in units of 1e-9.

    Init containers run one after the other before the containers; those that go on running
    (sidecars) run beside all that start after them (``aggregateContainerResourcesByFn`` of
    k8s.io/component-helpers/resource).
    """
    running: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod["spec"].get("initContainers") or []:
        peak |= running + _requests(container)
        if container.get("restartPolicy") == "Always":
            running += _requests(container)
    for container in pod["spec"].get("containers") or []:
        running += _requests(container)
    return peak | running


def _requests(container: Mapping[str, Any]) -> Counter[str]:
    container_requests = (container.get("resources") or {}).get("requests") or {}
    return Counter(
        {name: parse_quantity(amount).nanos for name, amount in container_requests.items()}
    )


def claim_name(consumer: Mapping[str, Any], entry: Mapping[str, Any]) -> str | None:
    """Return the ResourceClaim behind an entry of ``spec.resourceClaims``, None without one.

    ``consumer``: a pod or a PodGroup.
    """
    direct = entry.get("resourceClaimName")
    if direct is not None:
        return str(direct)
    for status in claim_statuses(consumer):
        if status["name"] == entry["name"]:
            name: str | None = status.get("resourceClaimName")
            return name
    return None


def group_name(pod: Mapping[str, Any]) -> str | None:
    """Return the name of the pod's PodGroup, None where it is of none."""
    name: str | None = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return name


def may_use(
    pod: Mapping[str, Any],
    pod_claim: Mapping[str, Any],
    claim: Mapping[str, Any],
    *,
    with_group: bool,
) -> bool:
    """Return whether the claim of an entry is for the pod: a generated one was made for it.

    Args:
        with_group: whether one that was made for the pod's PodGroup counts, too.

    Source: IsForPod of k8s.io/dynamic-resource-allocation/resourceclaim.
    """
    if "resourceClaimTemplateName" not in pod_claim or is_controlled_by(claim, pod):
        return True
    return with_group and _is_made_for_group_of(pod, claim)


def _is_made_for_group_of(pod: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    """Return whether a claim is that of the pod's group, whose uid the pod does not know."""
    name = group_name(pod)
    return name is not None and any(
        reference.get("controller")
        and reference["kind"] == "PodGroup"
        and reference["apiVersion"].startswith(f"{GROUPS_API}/")
        and reference["name"] == name
        for reference in claim["metadata"].get("ownerReferences") or []
    )


def claim_statuses(consumer: Mapping[str, Any]) -> list[Obj]:
    """Return what is known of the claims that are made for a pod or a PodGroup."""
    return consumer["status"].get("resourceClaimStatuses") or []


def is_reserved(
    claim: Mapping[str, Any], pod: Mapping[str, Any], *, with_group: bool = False
) -> bool:
    """Return whether the pod is in ``status.reservedFor``.

    Args:
        with_group: whether the name of its PodGroup there counts, too.

    Source: IsReservedForPod of k8s.io/dynamic-resource-allocation/resourceclaim.
    """
    name = group_name(pod) if with_group else None
    return any(
        user["uid"] == uid_of(pod)
        or (name is not None and is_group_reference(user) and user["name"] == name)
        for user in claim["status"].get("reservedFor") or []
    )


def is_group_reference(user: Mapping[str, Any]) -> bool:
    """Return whether an entry of ``status.reservedFor`` is a PodGroup."""
    return (user.get("apiGroup"), user["resource"]) == (GROUPS_API, "podgroups")


def consumer_reference(consumer: Mapping[str, Any]) -> Obj:
    """Return the entry for ``status.reservedFor`` of a pod or a PodGroup."""
    named: Obj = {"name": consumer["metadata"]["name"], "uid": uid_of(consumer)}
    if consumer["kind"] == "PodGroup":
        return {"apiGroup": GROUPS_API, "resource": "podgroups", **named}
    return {"resource": "pods", **named}


def names_claim_of(pod_claim: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Return whether an entry of ``spec.resourceClaims`` of a pod is one of its group's.

    It is if it has the same name and the same claim or template (BindTo of
    k8s.io/dynamic-resource-allocation/resourceclaim).
    """
    fields = ("name", "resourceClaimName", "resourceClaimTemplateName")
    return any(
        all(pod_claim.get(field) == entry.get(field) for field in fields)
        for entry in group["spec"].get("resourceClaims") or []
    )


def is_controlled_by(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Return whether ``owner`` is the object's controller."""
    return any(
        reference["uid"] == uid_of(owner) and reference.get("controller")
        for reference in obj["metadata"].get("ownerReferences") or []
    )
