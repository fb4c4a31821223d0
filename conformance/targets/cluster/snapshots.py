"""Cluster objects reduced to what an allocation depends on, and put together as one snapshot.

A snapshot is kept in results and judged again elsewhere, so it holds no status of nodes beyond
their declared features and the extended resources of device plugins, no managed fields and nothing
else that only makes it long.
The document's form is that of ``reference_allocator.snapshot.Snapshot.to_dict``: the slices in it
have the taints of DeviceTaintRules, as the scheduler sees them (the slice tracker of
k8s.io/dynamic-resource-allocation/resourceslice/tracker).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.seam.pods import pick
from conformance.seam.values import Capabilities
from kube.api import DRA_GROUP, Api, Discovery, Resource
from kube.errors import ApiError
from kube.values import Obj
from reference_allocator.extended import is_extended_resource
from reference_allocator.features import Features
from reference_allocator.rules.taints import apply_taint_rules
from reference_allocator.snapshot import Snapshot

TAINT_RULE = "DeviceTaintRule"
_TAINT_RULE_VERSIONS = ("v1", "v1beta2", "v1alpha3")
_KINDS = ("ResourceSlice", "DeviceClass", "ResourceClaim", "Node")


def find_followed_kinds(discovery: Discovery) -> list[Resource]:
    """Return all that a snapshot is made from, DeviceTaintRules only where they are served.

    Raises ApiError: resource.k8s.io is not served; TargetError: no answer.
    """
    version = discovery.dra_version()
    resources = [discovery.find("v1" if kind == "Node" else version, kind) for kind in _KINDS]
    rules = taint_rules(discovery)
    return [*resources, rules] if rules is not None else resources


def taint_rules(discovery: Discovery) -> Resource | None:
    """Return DeviceTaintRules in the best served version, None where none is."""
    for version in _TAINT_RULE_VERSIONS:
        try:
            return discovery.find(f"{DRA_GROUP}/{version}", TAINT_RULE)
        except ApiError as error:
            if error.code != 404:
                raise
    return None


def reduce_object(obj: Obj) -> Obj:
    """Return what of a slice, class, claim, node or taint rule matters to an allocation."""
    meta = obj["metadata"]
    metadata = {
        field: meta[field]
        for field in ("name", "namespace", "uid", "labels", "annotations", "creationTimestamp")
        if meta.get(field)
    }
    reduced_object: Obj = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata,
    }
    if obj["kind"] == "Node":
        metadata.pop("annotations", None)
        reduced_object["spec"] = pick(obj.get("spec"), "taints", "unschedulable")
        status = pick(obj.get("status"), "declaredFeatures")
        amounts = (obj.get("status") or {}).get("allocatable") or {}
        own = {name: amount for name, amount in amounts.items() if is_extended_resource(name)}
        reduced_object["status"] = {**status, "allocatable": own} if own else status
    else:
        reduced_object["spec"] = obj.get("spec") or {}
        if obj["kind"] == "ResourceClaim":
            reduced_object["status"] = pick(
                obj.get("status"), "allocation", "reservedFor", "devices"
            )
    return reduced_object


def allocation_of(claim: Mapping[str, Any]) -> Obj | None:
    """Return ``status.allocation``, None for a claim that has none."""
    return (claim.get("status") or {}).get("allocation") or None


def remove_allocation(claim: Obj) -> Obj:
    """Return the claim without an allocation, also where only its allocated state was seen."""
    status = {
        field: value
        for field, value in (claim.get("status") or {}).items()
        if field not in ("allocation", "reservedFor", "devices")
    }
    return {**claim, "status": status}


def make_snapshot(
    kubernetes: str, gates: Mapping[str, bool], objects: Iterable[Obj], claims: Iterable[Obj]
) -> Obj:
    """Return a snapshot as JSON.

    Args:
        kubernetes: the version, for example ``1.37.1``.
        objects: reduced slices, taint rules, classes, nodes and claims; of claims, the allocated
            ones count.
    """
    by_kind: dict[str, list[Obj]] = {kind: [] for kind in (*_KINDS, TAINT_RULE)}
    for obj in sorted(objects, key=by_name):
        by_kind[obj["kind"]].append(obj)
    return Snapshot(
        kubernetes=kubernetes,
        features=features_of(kubernetes, gates),
        slices=tuple(_tainted(by_kind["ResourceSlice"], by_kind[TAINT_RULE], gates)),
        device_classes=tuple(by_kind["DeviceClass"]),
        nodes=tuple(by_kind["Node"]),
        claims=tuple(claims),
        allocated=tuple(claim for claim in by_kind["ResourceClaim"] if allocation_of(claim)),
    ).to_dict()


def present_snapshot(api: Api, capabilities: Capabilities, namespace: str) -> Obj:
    """Return what the API server has now; ``claims`` are those of the namespace without allocation.

    Raises ApiError: one of the kinds may not be listed; TargetError: no answer.
    """
    objects: list[Obj] = []
    for resource in find_followed_kinds(api.discovery):
        objects += map(reduce_object, api.list(resource, agent=namespace))
    waiting = [
        obj
        for obj in sorted(objects, key=by_name)
        if obj["kind"] == "ResourceClaim"
        and obj["metadata"]["namespace"] == namespace
        and not allocation_of(obj)
    ]
    return make_snapshot(*capabilities.scheduling, objects, waiting)


def _tainted(slices: list[Obj], rules: list[Obj], gates: Mapping[str, bool]) -> list[Obj]:
    """Return the slices as the scheduler sees them; an unknown gate is on where rules exist."""
    if not rules or not gates.get("DRADeviceTaintRules", True):
        return slices
    return [dict(item) for item in apply_taint_rules(slices, rules)]


def features_of(kubernetes: str, gates: Mapping[str, bool]) -> Features:
    """Return what the scheduler may use; for a version that the allocator lacks, by gates only."""
    try:
        return Features.for_version(kubernetes, gates)
    except ValueError:
        return Features.from_gates(gates)


def by_name(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
