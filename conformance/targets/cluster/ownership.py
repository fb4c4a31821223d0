"""What runs of the suite have left on a cluster: all that has the run label, and nothing else."""

from __future__ import annotations

from conformance.kubeapi.api import Api
from conformance.kubeapi.discovery import DRA_GROUP, Discovery, Resource
from conformance.targets.base import RUN_LABEL, ApiError, Ref
from conformance.targets.cluster.snapshots import TAINT_RULE, taint_rules

_POLICIES = "admissionregistration.k8s.io/v1"
_KINDS = (
    (_POLICIES, "ValidatingAdmissionPolicyBinding"),
    (_POLICIES, "ValidatingAdmissionPolicy"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    (DRA_GROUP, "ResourceClaim"),
    (DRA_GROUP, "ResourceClaimTemplate"),
    ("v1", "Namespace"),
    (DRA_GROUP, TAINT_RULE),
    (DRA_GROUP, "DeviceClass"),
    (DRA_GROUP, "ResourceSlice"),
    ("v1", "Node"),
)
"""In deletion order: what makes others before what it makes, users before what they use."""


def owned(api: Api, run: str | None = None) -> list[Ref]:
    """References to all labelled objects, in the order in which they can be deleted.

    Args:
        api: where to look, across all namespaces.
        run: one run's id, None for every run.

    Raises:
        ApiError: a kind that the suite creates may not be listed.
    """
    selector = RUN_LABEL if run is None else f"{RUN_LABEL}={run}"
    found: list[Ref] = []
    for group_version, kind in _KINDS:
        resource = _resource(api.discovery, group_version, kind)
        if resource is None:
            continue
        try:
            answer = api.connection.request("GET", resource.path(), {"labelSelector": selector})
        except ApiError as error:
            if error.code == 403 and group_version == _POLICIES:
                continue  # who may not even list policies has made none
            raise
        items = answer["items"]
        for item in items or []:
            meta = item["metadata"]
            if RUN_LABEL in (meta.get("labels") or {}):
                found.append(Ref(resource.api_version, kind, meta["name"], meta.get("namespace")))
    return found


def _resource(discovery: Discovery, group_version: str, kind: str) -> Resource | None:
    if kind == TAINT_RULE:
        return taint_rules(discovery)
    try:
        api_version = discovery.dra_version() if group_version == DRA_GROUP else group_version
        return discovery.find(api_version, kind)
    except ApiError as error:
        if error.code == 404:
            return None
        raise
