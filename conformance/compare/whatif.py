"""A snapshot as it would be if: a pod ended, a node was cordoned or added, a gate was set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from conformance.compare.case import Key, consumers_of, deallocate_claim, remove_claim
from conformance.compare.evidence import Object, full_name, key_of, mapping_field, name_of
from kube.base.errors import UsageError
from reference_allocator.snapshot import Snapshot

_CORDONED = "node.kubernetes.io/unschedulable"
"""The taint that the node lifecycle controller puts on a node that is cordoned."""


def end_pod(snapshot: Snapshot, pod: str) -> Snapshot:
    """Return the snapshot as it is once a pod has ended: its claims are gone, or open again.

    The resource claim controller takes back what nobody uses any more; a claim that was made for
    the pod is deleted with it, another waits for the next pod that names it.
    Raises UsageError: there is no such pod.
    """
    namespace = pod.partition("/")[0]
    ended = [item for item in snapshot.pods if full_name(item) == pod]
    generated = {
        (namespace, str(entry.get("resourceClaimName")))
        for item in ended
        for status in [mapping_field(item, "status")]
        for entry in (
            *(status.get("resourceClaimStatuses") or ()),
            mapping_field(status, "extendedResourceClaimStatus"),
        )
    }
    users = [claim for claim in snapshot.allocated if pod in consumers_of(claim)]
    if not ended and not users:
        raise UsageError(f"--end {pod}: the snapshot has no such pod; give NAMESPACE/NAME")
    changed = replace(
        snapshot,
        pods=tuple(item for item in snapshot.pods if full_name(item) != pod),
        claims=tuple(item for item in snapshot.claims if key_of(item) not in generated),
    )
    for claim in users:
        changed = _release(changed, claim, pod, is_gone=_is_gone(claim, generated, snapshot))
    return changed


def _release(snapshot: Snapshot, claim: Object, pod: str, *, is_gone: bool) -> Snapshot:
    """Return the snapshot in which a claim is no longer reserved for a pod."""
    key, status = key_of(claim), mapping_field(claim, "status")
    others = [
        item
        for item in status.get("reservedFor") or ()
        if item.get("resource") != "pods" or f"{key[0]}/{item['name']}" != pod
    ]
    if not others:
        return remove_claim(snapshot, key) if is_gone else deallocate_claim(snapshot, key)
    kept = {**claim, "status": {**status, "reservedFor": others}}
    allocated = tuple(kept if key_of(item) == key else item for item in snapshot.allocated)
    return replace(snapshot, allocated=allocated)


def _is_gone(claim: Object, generated: Collection[Key], snapshot: Snapshot) -> bool:
    """Return whether a claim ends with its last user; where pods are not known, each does."""
    metadata = mapping_field(claim, "metadata")
    return (
        key_of(claim) in generated
        or not snapshot.pods
        or bool(metadata.get("ownerReferences") or metadata.get("deletionTimestamp"))
    )


def cordon_node(snapshot: Snapshot, node: str, on: bool = True) -> Snapshot:
    """Return it with a node cordoned or uncordoned. Raises UsageError: there is no such node."""
    if node not in map(name_of, snapshot.nodes):
        raise UsageError(f"--cordon {node}: the snapshot has no such node")
    nodes = []
    for item in snapshot.nodes:
        if name_of(item) == node:
            spec = item.get("spec") or {}
            taints = [taint for taint in spec.get("taints") or () if taint.get("key") != _CORDONED]
            item = {**item, "spec": {**spec, "unschedulable": on, "taints": taints}}
        nodes.append(item)
    return replace(snapshot, nodes=tuple(nodes))


def add_objects(snapshot: Snapshot, objects: Iterable[Object], where: str) -> Snapshot:
    """Return it with Nodes and their ResourceSlices. Raises UsageError: another kind, or known."""
    nodes, slices = list(snapshot.nodes), list(snapshot.slices)
    known = {"Node": set(map(name_of, nodes)), "ResourceSlice": set(map(name_of, slices))}
    for obj in objects:
        kind = str(obj.get("kind"))
        into = {"Node": nodes, "ResourceSlice": slices}.get(kind)
        if into is None:
            raise UsageError(f"{where}: {obj.get('kind')}: give Nodes and ResourceSlices only")
        if name_of(obj) in known[kind]:
            raise UsageError(f"{where}: the snapshot has {kind} {name_of(obj)} already")
        known[kind].add(name_of(obj))
        into.append(obj)
    # They are read, so that what is malformed is named; the rest of the cluster was read before.
    added_nodes, added_slices = nodes[len(snapshot.nodes) :], slices[len(snapshot.slices) :]
    added = Snapshot(
        snapshot.kubernetes,
        snapshot.features,
        nodes=tuple(added_nodes),
        slices=tuple(added_slices),
    )
    Snapshot.from_dict(added.to_dict())
    return replace(snapshot, nodes=tuple(nodes), slices=tuple(slices))


def configure_snapshot(snapshot: Snapshot, kubernetes: str, gates: Mapping[str, bool]) -> Snapshot:
    """Return it as another Kubernetes version, or other feature gates, would have it.

    Raises UsageError: the version is not known, or the gate's effect is in the snapshot for good.
    """
    if "DRADeviceTaintRules" in gates:
        raise UsageError(
            "--feature-gate DRADeviceTaintRules: the slices of a snapshot have the rules' taints"
            " already; set DRADeviceTaints instead"
        )
    version = kubernetes or snapshot.kubernetes
    try:
        base = type(snapshot.features).for_version(version) if kubernetes else snapshot.features
        features = base.with_gates(version, gates) if gates else base
    except ValueError as error:
        raise UsageError(f"--kubernetes {version}: {error}") from None
    return replace(snapshot, kubernetes=version, features=features)
