"""What is wrong with the allocations of a whole cluster, by its snapshot.

Allocations are judged by what is published now. What may rightly change after an allocation counts
for nothing: taints, configuration of classes, the state of a pool that its driver is updating.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.compare.evidence import (
    Object,
    ask_reference,
    full_name,
    has_ended,
    key_of,
    name_of,
)
from conformance.compare.waiting import group_of
from conformance.seam.overlaps import exclusive_devices, is_copied
from kube.base.errors import UsageError
from kube.slices import results_of
from kube.values import selected_node
from reference_allocator.checks import SelectorProblems, check
from reference_allocator.features import Features, gates_of
from reference_allocator.snapshot import Snapshot

_MAY_CHANGE = frozenset(
    {"taint", "config", "result-fields", "pool-generation", "pool-incomplete", "pool-invalid"}
)
_NODE_FIELDS = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
NOT_JUDGED = "not-judged"
SLOW = frozenset({"reserved-for-nobody", "not-deleted", "no-node", "stale-slice", NOT_JUDGED})
"""Rules of what controllers and drivers put right themselves, if they are given time."""

_Pools = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that should not be.

    Attributes:
        rule: ``double-allocation``, ``reserved-for-nobody``, ``not-deleted``, ``no-node``,
            ``stale-slice``, ``dropped-fields``, ``prepared-for-nobody``, ``not-judged``, or a rule
            of ``reference_allocator.checks``.
        subject: ``namespace/name`` of a claim; ``driver/pool`` of a slice; of what a kubelet has
            prepared the node.
    """

    rule: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.message}"


def audit(document: Mapping[str, Any]) -> list[Finding]:
    """Return all findings of a snapshot's document, as `audit_snapshot` does.

    Raises UsageError: it is no snapshot, or it is damaged.
    """
    return audit_snapshot(
        ask_reference(lambda: Snapshot.from_dict(document)), pods_known="pods" in document
    )


def audit_snapshot(snapshot: Snapshot, *, pods_known: bool) -> list[Finding]:
    """Return all findings of a snapshot, by rule.

    ``pods_known``: whether it has the pods; without them none is called gone.
    Raises UsageError: it is damaged.
    """

    def ask() -> list[Finding]:
        nodes = set(map(name_of, snapshot.nodes))
        findings = [
            *claim_findings(snapshot, pods_known),
            *slice_findings(snapshot.slices, nodes, snapshot.features),
        ]
        return sorted(findings, key=str)

    return ask_reference(ask)


def claim_findings(
    snapshot: Snapshot, pods_known: bool, judged: Collection[str] | None = None
) -> set[Finding]:
    """Return what is wrong with claims; of the ``judged`` alone, beside others with devices.

    Raises InputError: an object has not the form of its kind.
    """
    findings = {*_double_allocations(snapshot), *_broken_allocations(snapshot, judged)}
    if pods_known:
        findings |= set(_unused_claims(snapshot))
    return {item for item in findings if judged is None or item.subject in judged}


def slice_findings(
    slices: Iterable[Object], nodes: Collection[str], features: Features
) -> Iterator[Finding]:
    """Yield slices that nobody will mend: of nodes that are gone, and what an update left.

    ``slices``: whole pools. ``features``: of the scheduler, as far as the API server has them.
    """
    pools: dict[str, list[Object]] = defaultdict(list)
    for item in slices:
        pools["/".join(pool_of(item))].append(item)
    for name, pool_slices in pools.items():
        newest = max(int(item["spec"]["pool"]["generation"]) for item in pool_slices)
        current = [item for item in pool_slices if item["spec"]["pool"]["generation"] == newest]
        expected_slices = current[0]["spec"]["pool"]["resourceSliceCount"]
        yield from _dropped_fields(name, pool_slices, features)
        for item in pool_slices:
            node, generation = item["spec"].get("nodeName"), item["spec"]["pool"]["generation"]
            if node and node not in nodes:
                text = f"slice {name_of(item)} is of node {node}, which is gone"
                yield Finding("stale-slice", name, text)
            elif generation < newest:
                text = f"slice {name_of(item)} is of generation {generation}; {newest} is there"
                yield Finding("stale-slice", name, text)
        if len(current) < expected_slices:
            text = f"{len(current)} of {expected_slices} slices of generation {newest} are there"
            yield Finding("stale-slice", name, text)


def _dropped_fields(
    name: str, pool_slices: Sequence[Object], features: Features
) -> Iterator[Finding]:
    """Yield slices from which an API server whose gate is off has dropped fields.

    Without counters an empty slice means nothing beside others of its pool, and the API lets no
    slice be for no node (validateResourceSliceSpec).
    """
    off = f"dropped, because {' or '.join(gates_of('partitionableDevices'))} is off?"
    for item in pool_slices:
        spec, text = item["spec"], ""
        is_empty = not (spec.get("devices") or spec.get("sharedCounters"))
        if not any(spec.get(field) for field in _NODE_FIELDS):
            text = f"is for no node: is perDeviceNodeSelection {off}"
        elif is_empty and len(pool_slices) > 1 and not features.partitionable_devices:
            text = f"has neither devices nor counters: are the counters {off}"
        if text:
            yield Finding("dropped-fields", name, f"slice {name_of(item)} {text}")


def kubelet_findings(document: Mapping[str, Any], prepared: Mapping[str, int]) -> Iterator[Finding]:
    """Yield nodes whose kubelets have more claims prepared (by node) than pods there use."""
    pods = [pod for pod in document.get("pods") or () if not has_ended(pod)]
    living = nodes_by_pod(pods)
    nodes_of_group: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in pods:
        node = living.get(str(pod["metadata"].get("uid")), "")
        nodes_of_group[key_of(pod)[0], group_of(pod)].add(node)
    used: dict[str, set[str]] = defaultdict(set)
    for claim in document["allocated"]:
        for consumer in (claim.get("status") or {}).get("reservedFor") or ():
            nodes = {living.get(consumer.get("uid"), "")}
            if consumer.get("resource") == "podgroups":
                nodes = nodes_of_group[key_of(claim)[0], str(consumer.get("name"))]
            for node in nodes:
                used[node].add(full_name(claim))
    for node, number in sorted(prepared.items()):
        if number > len(used[node]):
            text = f"its kubelet has {number} claims prepared; pods there use {len(used[node])}"
            yield Finding("prepared-for-nobody", node, text)


def _double_allocations(snapshot: Snapshot) -> Iterator[Finding]:
    holders: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for claim in snapshot.allocated:
        for device in exclusive_devices(claim):
            holders[device].append(full_name(claim))
    for device, claims in holders.items():
        if len(claims) > 1:
            text = f"{'/'.join(device)} is allocated to {', '.join(claims[1:])} too"
            yield Finding("double-allocation", claims[0], text)


def _broken_allocations(snapshot: Snapshot, judged: Collection[str] | None) -> Iterator[Finding]:
    """Yield allocations that the checker refuses: those on one node and pools are judged together.

    With the slices of their pools alone, so that the time grows with the cluster and no faster.
    """
    slices: dict[tuple[str, str], list[Object]] = defaultdict(list)
    users: dict[tuple[str, str], list[Object]] = defaultdict(list)
    alike: dict[tuple[str, _Pools], list[Object]] = defaultdict(list)
    where = nodes_by_pod(snapshot.pods)
    for item in snapshot.slices:
        slices[pool_of(item)].append(item)
    for claim in snapshot.allocated:
        pools = pools_of(claim)
        for pool in pools:
            users[pool].append(claim)
        if not is_copied(claim) and (judged is None or full_name(claim) in judged):
            alike[node_of(claim, where), pools].append(claim)
    nodes = {name_of(node): node for node in snapshot.nodes}
    selector_problems: SelectorProblems = {}
    for (name, pools), claims in alike.items():
        if name and name not in nodes:
            for claim in claims:
                yield Finding("no-node", full_name(claim), f"there is no node {name}")
            continue
        near = replace(
            snapshot,
            slices=tuple(item for pool in sorted(pools) for item in slices[pool]),
            allocated=tuple({id(item): item for pool in pools for item in users[pool]}.values()),
        )
        yield from _check_allocations(near, nodes.get(name, {}), claims, selector_problems)


def _check_allocations(
    near: Snapshot, node: Object, claims: Sequence[Object], selector_problems: SelectorProblems
) -> Iterator[Finding]:
    allocations = [claim["status"]["allocation"] for claim in claims]
    try:
        broken = ask_reference(lambda: check(near, node, claims, allocations, selector_problems))
    except UsageError as error:
        yield from (Finding(NOT_JUDGED, full_name(claim), str(error)) for claim in claims)
        return
    for item in broken:
        # That another claim has the device is said once, by `_doubles`.
        if item.rule not in _MAY_CHANGE and item.rule != "in-use":
            text = f"{item.device}: {item.message}" if item.device else item.message
            yield Finding(item.rule, item.claim or full_name(claims[0]), text)


def nodes_by_pod(pods: Iterable[Object]) -> dict[str, str]:
    """Return the node of each pod, by its uid; empty while it has none."""
    return {
        pod["metadata"].get("uid", ""): str((pod.get("spec") or {}).get("nodeName") or "")
        for pod in pods
    }


def pool_of(item: Object) -> tuple[str, str]:
    """Return driver and pool of a slice."""
    return item["spec"]["driver"], item["spec"]["pool"]["name"]


def pools_of(claim: Object) -> _Pools:
    """Return driver and pool of the devices that a claim has."""
    return frozenset((item["driver"], item["pool"]) for item in results_of(claim))


def node_of(claim: Object, where: Mapping[str, str]) -> str:
    """Return the node of an allocation, or of a pod that uses it (``where``: by uid); else ""."""
    named = selected_node(claim["status"]["allocation"].get("nodeSelector"))
    if named:
        return named
    consumers = [str(item.get("uid")) for item in claim["status"].get("reservedFor") or ()]
    return next((where[uid] for uid in consumers if uid in where), "")


def _unused_claims(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield claims that are reserved for pods that are gone, or that stay though deleted."""
    pods = {pod["metadata"].get("uid"): pod for pod in snapshot.pods}
    for claim in (*snapshot.claims, *snapshot.allocated):
        name, meta = full_name(claim), claim["metadata"]
        users = (claim.get("status") or {}).get("reservedFor") or ()
        reserved = [item for item in users if item.get("resource") == "pods"]
        living = sum(item.get("resource") == "podgroups" for item in users)  # as far as is known
        for consumer in reserved:
            state = _end_of_pod(pods.get(consumer.get("uid")))
            living += not state
            if state:
                yield Finding("reserved-for-nobody", name, f"pod {consumer['name']} {state}")
        if meta.get("deletionTimestamp") and not living:
            held = ", ".join(meta.get("finalizers") or ()) or "nothing"
            text = f"was deleted at {meta['deletionTimestamp']}, and is held by {held}"
            yield Finding("not-deleted", name, text)


def _end_of_pod(pod: Mapping[str, Any] | None) -> str:
    if pod is None:
        return "is gone"
    return f"has ended ({pod['status']['phase']})" if has_ended(pod) else ""
