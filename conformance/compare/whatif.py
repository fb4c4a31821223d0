"""A snapshot as it would be if: a pod ended, a node was cordoned or added, a gate was set.

And whether claims fit then: the reference allocator is asked for each node that suits the pod.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.compare.evidence import Object, key_of, name_of, obstacle, selectors_of
from conformance.errors import UsageError
from reference_allocator.allocator import Allocator
from reference_allocator.snapshot import Snapshot


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


@dataclass(frozen=True, slots=True)
class Fit:
    """What the allocator takes for a case on a node: ``status.allocation`` of each claim."""

    node: str
    allocations: tuple[Object, ...]


class Trial:
    """Asks the allocator again and again about one cluster and its changes; not for threads."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._built: tuple[Snapshot, Allocator] | None = None

    @property
    def over(self) -> bool:
        return time.monotonic() > self._until

    def fit(self, case: Case) -> Fit | None:
        """Where the claims fit: on the first node that will do; None also if the time is over."""
        return next(iter(self.fits(case)), None)

    def fits(self, case: Case) -> Iterator[Fit]:
        """Each node on which the claims fit. Raises InputError."""
        wanted = selectors_of(case.pod, case.snapshot) if case.pod else ()
        allocator = self._allocator(case)
        for node in case.snapshot.nodes:
            if self.over:
                return
            if obstacle(node, case.pod_spec, wanted) is not None:
                continue
            outcome = allocator.allocate(node, case.claims, deadline=self._until)
            if outcome.kind == "allocated":
                yield Fit(name_of(node), outcome.allocations)
            elif outcome.kind == "error":
                return  # it ends the scheduler's attempt, whatever other nodes have

    def _allocator(self, case: Case) -> Allocator:
        snapshot, built = case.snapshot, self._built
        if built is not None and all(
            getattr(built[0], field) is getattr(snapshot, field)
            for field in ("slices", "device_classes", "allocated", "features", "kubernetes")
        ):
            return built[1]
        allocator = Allocator(
            snapshot.features,
            snapshot.slices,
            snapshot.device_classes,
            snapshot.allocated,
            kubernetes=snapshot.kubernetes,
        )
        self._built = snapshot, allocator
        return allocator


def consumers_of(claim: Object) -> list[str]:
    """``namespace/name`` of the pods for which a claim is reserved."""
    namespace = key_of(claim)[0]
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    return [f"{namespace}/{item['name']}" for item in reserved if item.get("resource") == "pods"]


def results_of(claim: Object) -> Iterator[Mapping[str, Any]]:
    """The devices that a claim has, as ``status.allocation.devices.results``."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    yield from (allocation.get("devices") or {}).get("results") or ()


def ended(snapshot: Snapshot, pod: str) -> Snapshot:
    """Without a pod: what is reserved for nobody else is free. Raises UsageError: no such pod."""
    left, known = [], any("/".join(key_of(item)) == pod for item in snapshot.pods)
    for claim in snapshot.allocated:
        consumers = consumers_of(claim)
        known = known or pod in consumers
        if consumers != [pod]:
            left.append(claim)
    if not known:
        raise UsageError(f"--end {pod}: the snapshot has no such pod; give NAMESPACE/NAME")
    pods = tuple(item for item in snapshot.pods if "/".join(key_of(item)) != pod)
    return replace(snapshot, allocated=tuple(left), pods=pods)


def freed(snapshot: Snapshot, claim: str) -> Snapshot:
    """Without the allocation of the claim ``namespace/name``."""
    left = tuple(item for item in snapshot.allocated if "/".join(key_of(item)) != claim)
    return replace(snapshot, allocated=left)


def cordoned(snapshot: Snapshot, node: str, on: bool = True) -> Snapshot:
    """With a node's ``spec.unschedulable`` set. Raises UsageError: there is no such node."""
    if node not in map(name_of, snapshot.nodes):
        raise UsageError(f"--cordon {node}: the snapshot has no such node")
    return with_node_spec(snapshot, node, {"unschedulable": on})


def with_node_spec(snapshot: Snapshot, node: str, spec: Object) -> Snapshot:
    """With some fields of a node's spec changed."""
    nodes = tuple(
        {**item, "spec": {**(item.get("spec") or {}), **spec}} if name_of(item) == node else item
        for item in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def with_objects(snapshot: Snapshot, objects: Iterable[Object], where: str) -> Snapshot:
    """With Nodes, and ResourceSlices that name them. Raises UsageError: another kind, or known."""
    nodes, slices = list(snapshot.nodes), list(snapshot.slices)
    for obj in objects:
        known: Sequence[Object]
        if obj.get("kind") == "Node":
            known, into = snapshot.nodes, nodes
        elif obj.get("kind") == "ResourceSlice":
            known, into = snapshot.slices, slices
        else:
            raise UsageError(f"{where}: {obj.get('kind')}: give Nodes and ResourceSlices only")
        if name_of(obj) in map(name_of, known):
            raise UsageError(f"{where}: the snapshot has {obj['kind']} {name_of(obj)} already")
        into.append(obj)
    # Read again, so that what is malformed is named.
    changed = replace(snapshot, nodes=tuple(nodes), slices=tuple(slices))
    return Snapshot.from_dict(changed.to_dict())


def configured(snapshot: Snapshot, kubernetes: str, gates: Mapping[str, bool]) -> Snapshot:
    """As another Kubernetes version, or with other feature gates, would have it.

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
        features = base.changed(version, gates) if gates else base
    except ValueError as error:
        raise UsageError(f"--kubernetes {version}: {error}") from None
    return replace(snapshot, kubernetes=version, features=features)
