"""A snapshot as it would be if: a pod ended, a node was cordoned or added, a gate was set.

And whether claims fit then: the reference allocator is asked for each node that suits the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from conformance.compare.evidence import (
    Object,
    find_obstacle,
    full_name,
    key_of,
    name_of,
    selectors_of,
)
from kube.base.errors import UsageError
from reference_allocator.allocator import Allocator
from reference_allocator.snapshot import Snapshot

_CORDONED = "node.kubernetes.io/unschedulable"
"""The taint that the node lifecycle controller puts on a node that is cordoned."""


@dataclass(frozen=True, slots=True)
class Case:
    """Claims that are to be allocated together, for a pod if it is known, and the cluster."""

    snapshot: Snapshot
    claims: tuple[Object, ...]
    pod: Object | None = None

    @property
    def pod_spec(self) -> Object:
        """``spec`` of the pod; without one any pod is meant."""
        return (self.pod or {}).get("spec") or {}


def find_fitting_node(case: Case, until: float) -> str | None:
    """Return the first node on which the allocator finds devices for the claims; None: none.

    ``until``: of `time.monotonic`. Raises InputError: an object has not the form of its kind.
    """
    snapshot = case.snapshot
    claim_selectors = selectors_of(case.pod, snapshot) if case.pod else ()
    suited = (
        node for node in snapshot.nodes if not find_obstacle(node, case.pod_spec, claim_selectors)
    )
    allocator = Allocator.from_snapshot(snapshot)
    for node in suited:
        kind = allocator.allocate(node, case.claims, deadline=until).kind
        if kind == "allocated":
            return name_of(node)
        if kind == "error":
            break  # it ends the scheduler's attempt, whatever other nodes have
    return None


def consumers_of(claim: Object) -> list[str]:
    """Return ``namespace/name`` of the pods for which a claim is reserved."""
    namespace = key_of(claim)[0]
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    return [f"{namespace}/{item['name']}" for item in reserved if item.get("resource") == "pods"]


def end_pod(snapshot: Snapshot, pod: str) -> Snapshot:
    """Return it without a pod, which frees what only that has. Raises UsageError: no such pod."""
    still_allocated, is_known = [], any(full_name(item) == pod for item in snapshot.pods)
    for claim in snapshot.allocated:
        consumers = consumers_of(claim)
        is_known = is_known or pod in consumers
        if consumers != [pod]:
            still_allocated.append(claim)
    if not is_known:
        raise UsageError(f"--end {pod}: the snapshot has no such pod; give NAMESPACE/NAME")
    pods = tuple(item for item in snapshot.pods if full_name(item) != pod)
    return replace(snapshot, allocated=tuple(still_allocated), pods=pods)


def free_claim(snapshot: Snapshot, claim: str) -> Snapshot:
    """Return the snapshot without the allocation of the claim ``namespace/name``."""
    still_allocated = tuple(item for item in snapshot.allocated if full_name(item) != claim)
    return replace(snapshot, allocated=still_allocated)


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
    for obj in objects:
        into = {"Node": nodes, "ResourceSlice": slices}.get(str(obj.get("kind")))
        if into is None:
            raise UsageError(f"{where}: {obj.get('kind')}: give Nodes and ResourceSlices only")
        if name_of(obj) in map(name_of, into):
            raise UsageError(f"{where}: the snapshot has {obj['kind']} {name_of(obj)} already")
        into.append(obj)
    # Read again, so that what is malformed is named.
    changed = replace(snapshot, nodes=tuple(nodes), slices=tuple(slices))
    return Snapshot.from_dict(changed.to_dict())


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
