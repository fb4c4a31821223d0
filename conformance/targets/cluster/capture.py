"""A whole cluster as one snapshot: everything that an allocation of any claim depends on.

What was captured leaves the cluster, in a bug report perhaps. So of a pod only what a decision
reads is kept, labels of nodes alone, annotations of nothing; Secrets are never read. Opaque
configuration of claims and classes stays: allocations are judged by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.seam.overlaps import COPIED
from conformance.seam.pods import META, pick, reduced_pod
from conformance.targets.cluster.capabilities import feature_gates, server_versions
from conformance.targets.cluster.snapshots import (
    allocation_of,
    by_name,
    find_followed_kinds,
    make_snapshot,
    reduce_object,
)
from kube.api import DRA_VERSIONS, Api, Resource, collect_objects
from kube.base.errors import TargetError
from kube.errors import ApiError
from kube.values import POD_CLAIM_ANNOTATION, Obj

RIGHTS = """\
# What `dra-conformance capture`, `explain` and `audit` read, `audit --watch` follows.
#   dra-conformance capture --rbac | kubectl apply -f -
#   kubectl create clusterrolebinding dra-capture --clusterrole=dra-capture --user=YOU
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: dra-capture
rules:
- apiGroups: [resource.k8s.io]
  resources:
  - resourceslices
  - deviceclasses
  - resourceclaims
  - resourceclaimtemplates
  - devicetaintrules
  verbs: [list, watch]
- apiGroups: [""]
  resources: [nodes, pods]
  verbs: [list, watch]
# Which feature gates are on. Without it those of the version's defaults are assumed.
- nonResourceURLs: [/metrics]
  verbs: [get]
"""

_ADVICE = {
    401: "the credentials of the context's user are wrong or have expired",
    403: "`dra-conformance capture --rbac` prints the rights that are needed",
    404: "dynamic resource allocation needs Kubernetes 1.34",
}
_TEMPLATE = "ResourceClaimTemplate"


def capture(api: Api, missing: Callable[[str], object]) -> Obj:
    """Return a cluster's snapshot, without ``pods`` or ``templates`` if they may not be read.

    Lists are of different moments: claims come last but for pods, so that a claim is not seen
    without its devices, and a pod that has gone is not seen with its claim.
    ``missing``: told what could not be read, where the snapshot is of use without it.
    Raises TargetError: there is no answer, or something that every answer depends on may not be
    read or is not served.
    """
    try:
        version = server_versions(api)[1]
        gates = feature_gates(api, version, only_read=True)
        return snapshot_of(api, version, gates, missing)
    except ApiError as error:
        raise make_refusal(api, error) from None


def snapshot_of(
    api: Api, version: str, gates: Mapping[str, bool], missing: Callable[[str], object]
) -> Obj:
    """Return as `capture`, where the cluster's version and gates are known. Raises ApiError."""
    objects: list[Obj] = []
    kinds = kinds_of(api)
    claims = kinds.pop("ResourceClaim")
    for resource in (*kinds.values(), claims):
        try:
            objects += collect_objects(api.connection, resource, keep_relevant)[0]
        except ApiError as error:
            if resource.kind != "DeviceTaintRule" or gates.get("DRADeviceTaintRules", True):
                raise
            missing(_describe_refusal(resource.plural, error))
    templates = _where_allowed(api, api.discovery.find(claims.api_version, _TEMPLATE), missing)
    reserved = {
        consumer.get("uid")
        for claim in objects
        if claim["kind"] == "ResourceClaim"
        for consumer in claim.get("status", {}).get("reservedFor") or ()
    }
    pods = _where_allowed(api, api.discovery.find("v1", "Pod"), missing, reserved)
    waiting = [
        item for item in objects if item["kind"] == "ResourceClaim" and not allocation_of(item)
    ]
    snapshot = make_snapshot(version, gates, objects, sorted(waiting, key=by_name))
    return snapshot | {
        field: value
        for field, value in (("pods", pods), ("templates", templates))
        if value is not None
    }


def kinds_of(api: Api) -> dict[str, Resource]:
    """Return the resources that a snapshot is made from, by kind.

    Raises ApiError: refused; TargetError: resource.k8s.io/v1 is not served.
    """
    kinds = {resource.kind: resource for resource in find_followed_kinds(api.discovery)}
    served = kinds["ResourceClaim"].api_version
    if not served.endswith(f"/{DRA_VERSIONS[0]}"):
        raise TargetError(
            f"{api.connection.where} serves {served} and not resource.k8s.io/v1, which replaced it"
            " in Kubernetes 1.34; update the cluster first"
        )
    return kinds


def make_refusal(api: Api, error: ApiError) -> TargetError:
    """Return an error that says what an API server refuses to a reader, and what to do."""
    advice = _ADVICE.get(error.code, "see the API server's log")
    return TargetError(f"{_describe_refusal(api.connection.where, error)}; {advice}")


def _where_allowed(
    api: Api, resource: Resource, missing: Callable[[str], object], reserved: Any = ()
) -> list[Obj] | None:
    def keep(obj: Obj) -> Obj | None:
        return reduced_pod(obj, reserved) if resource.kind == "Pod" else keep_relevant(obj)

    try:
        return sorted(collect_objects(api.connection, resource, keep)[0], key=by_name)
    except ApiError as error:
        missing(_describe_refusal(resource.plural, error))
        return None


def _describe_refusal(what: str, error: ApiError) -> str:
    return f"{what}: cannot be read: {error.message} ({error.code})"


def keep_relevant(obj: Obj) -> Obj:
    """Return a reduced object without what says nothing about an allocation."""
    shortened = reduce_object(obj)
    meta = pick(obj["metadata"], *META)
    if obj["kind"] == "Node":
        meta |= pick(obj["metadata"], "labels")
    if obj["kind"] == "ResourceClaim":
        meta |= _made_for(obj["metadata"])
    if COPIED in (obj["metadata"].get("annotations") or {}):
        meta["annotations"] = {**meta.get("annotations", {}), COPIED: "true"}
    shortened["metadata"] = meta
    if "status" in shortened:
        shortened["status"].pop("devices", None)
    return shortened


def _made_for(metadata: Mapping[str, Any]) -> Obj:
    """Return for which pod a claim was made, and for which of its entries; nothing for others."""
    owners = [
        pick(owner, "apiVersion", "kind", "name", "uid", "controller")
        for owner in metadata.get("ownerReferences") or ()
        if owner.get("kind") == "Pod"
    ]
    if not owners:
        return {}
    annotations = pick(metadata.get("annotations"), POD_CLAIM_ANNOTATION)
    return {"ownerReferences": owners, **({"annotations": annotations} if annotations else {})}
