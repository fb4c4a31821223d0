"""What runs of the suite have left on a cluster: all that has the run label, and nothing else."""

from __future__ import annotations

from conformance.targets.cluster.snapshots import TAINT_RULE, taint_rules
from kube.api import DRA_GROUP, Api, Discovery, Resource
from kube.errors import ApiError
from kube.nodes import RUN_LABEL
from kube.values import Ref

_ADMISSION = "admissionregistration.k8s.io"
MADE_BY_SCENARIOS = (
    (f"{_ADMISSION}/v1", "ValidatingAdmissionPolicyBinding"),
    (f"{_ADMISSION}/v1", "ValidatingAdmissionPolicy"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("scheduling.k8s.io/v1beta1", "PodGroup"),
    (DRA_GROUP, "ResourceClaim"),
    (DRA_GROUP, "ResourceClaimTemplate"),
    ("v1", "Namespace"),
    (DRA_GROUP, TAINT_RULE),
    (DRA_GROUP, "DeviceClass"),
    (DRA_GROUP, "ResourceSlice"),
    ("v1", "Node"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
)
"""What scenarios make, in deletion order: what makes others before what it makes, users before what
they use."""

_NAMES = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Metadata is all that is asked for: there may be Secrets among the objects."""


def list_owned(api: Api, run: str | None = None, *, every_kind: bool = False) -> list[Ref]:
    """Return references to all labelled objects, in the order in which they can be deleted.

    Args:
        api: where to look, across all namespaces.
        run: one run's id, None for every run.
        every_kind: also look for kinds that no scenario makes, but perhaps a driver's manifests.
            Those that may not be listed are left out: a user who may not list them made none.

    Raises ApiError: a kind that the suite creates may not be listed.
    """
    selector = RUN_LABEL if run is None else f"{RUN_LABEL}={run}"
    made_kinds = [
        made_kind
        for group_and_kind in MADE_BY_SCENARIOS
        if (made_kind := _resource(api.discovery, *group_and_kind)) is not None
    ]
    made_names = {(made_kind.group, made_kind.kind) for made_kind in made_kinds}
    kinds = made_kinds
    if every_kind:
        other_kinds = [
            removable
            for removable in api.discovery.list_removable()
            if (removable.group, removable.kind) not in made_names
        ]
        kinds = sorted([*made_kinds, *other_kinds], key=_rank)
    refs: list[Ref] = []
    for resource in kinds:
        try:
            answer = api.connection.request(
                "GET", resource.path(), {"labelSelector": selector}, accept=_NAMES
            )
        except ApiError as error:
            other = resource not in made_kinds
            if error.code == 403 and (other or resource.group == _ADMISSION):
                continue
            if error.code == 404 and other:
                continue  # its definition is on its way out
            raise
        for item in answer["items"] or []:
            meta = item["metadata"]
            if RUN_LABEL in (meta.get("labels") or {}):
                name, namespace = meta["name"], meta.get("namespace")
                refs.append(Ref(resource.api_version, resource.kind, name, namespace))
    return refs


def _rank(resource: Resource) -> tuple[int, int]:
    """Return the place of a kind in the deletion order.

    First what could refuse the other deletions, then what is in namespaces, and last what defines
    other kinds.
    """
    names = [kind for _, kind in MADE_BY_SCENARIOS]
    position = names.index(resource.kind) if resource.kind in names else -1
    if resource.group == _ADMISSION:
        return 0, position
    if resource.namespaced:
        return 1, position
    return (3 if resource.kind == "CustomResourceDefinition" else 2), position


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
