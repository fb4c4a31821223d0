"""What is wrong with the allocations of a whole cluster, by its snapshot.

Allocations are judged by what is published now. What may rightly change after an allocation counts
for nothing: taints, configuration of classes, the state of a pool that its driver is updating.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.compare.evidence import Object, full_name, has_ended, key_of, name_of, reading
from conformance.compare.whatif import results_of
from conformance.errors import UsageError
from conformance.targets.seam.overlaps import exclusive_devices, is_copied
from conformance.targets.seam.values import selected_node
from reference_allocator.checks import check
from reference_allocator.snapshot import Snapshot

_MAY_CHANGE = frozenset(
    {"taint", "config", "result-fields", "pool-generation", "pool-incomplete", "pool-invalid"}
)
NOT_JUDGED = "not-judged"
_Pools = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that should not be.

    Attributes:
        rule: ``double-allocation``, ``reserved-for-nobody``, ``not-deleted``, ``no-node``,
            ``not-judged``, or a rule of ``reference_allocator.checks``.
        subject: ``namespace/name`` of a claim.
    """

    rule: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.message}"


def audit(document: Mapping[str, Any]) -> list[Finding]:
    """All findings of a snapshot's document, by rule; without ``pods`` none is called gone.

    Raises UsageError: it is no snapshot, or it is damaged.
    """

    def ask() -> list[Finding]:
        snapshot = Snapshot.from_dict(document)
        found = [*_doubles(snapshot), *_broken(snapshot)]
        if "pods" in document:
            found += _unused(snapshot)
        return sorted(set(found), key=str)

    return reading(ask)


def _doubles(snapshot: Snapshot) -> Iterator[Finding]:
    holders: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for claim in snapshot.allocated:
        for device in exclusive_devices(claim):
            holders[device].append(full_name(claim))
    for device, claims in holders.items():
        if len(claims) > 1:
            text = f"{'/'.join(device)} is allocated to {', '.join(claims[1:])} too"
            yield Finding("double-allocation", claims[0], text)


def _broken(snapshot: Snapshot) -> Iterator[Finding]:
    """Allocations that the checker refuses: those on the same node and pools are judged together.

    With the slices of their pools alone, so that the time grows with the cluster and no faster.
    """
    slices: dict[tuple[str, str], list[Object]] = defaultdict(list)
    users: dict[tuple[str, str], dict[tuple[str, str], Object]] = defaultdict(dict)
    alike: dict[tuple[str, _Pools], list[Object]] = defaultdict(list)
    where = {
        pod["metadata"]["uid"]: str((pod.get("spec") or {}).get("nodeName") or "")
        for pod in snapshot.pods
    }
    for item in snapshot.slices:
        slices[item["spec"]["driver"], item["spec"]["pool"]["name"]].append(item)
    for claim in snapshot.allocated:
        pools = frozenset((item["driver"], item["pool"]) for item in results_of(claim))
        for pool in pools:
            users[pool][key_of(claim)] = claim
        if not is_copied(claim):
            alike[_node_of(claim, where), pools].append(claim)
    nodes = {name_of(node): node for node in snapshot.nodes}
    for (name, pools), claims in alike.items():
        if name and name not in nodes:
            for claim in claims:
                yield Finding("no-node", full_name(claim), f"there is no node {name}")
            continue
        near = replace(
            snapshot,
            slices=tuple(item for pool in sorted(pools) for item in slices[pool]),
            allocated=tuple({k: v for pool in pools for k, v in users[pool].items()}.values()),
        )
        yield from _judged(near, nodes.get(name, {}), claims)


def _judged(near: Snapshot, node: Object, claims: Sequence[Object]) -> Iterator[Finding]:
    allocations = [claim["status"]["allocation"] for claim in claims]
    try:
        broken = reading(lambda: check(near, node, claims, allocations))
    except UsageError as error:
        yield from (Finding(NOT_JUDGED, full_name(one), str(error)) for one in claims)
        return
    for item in broken:
        # That another claim has the device is said once, by `_doubles`.
        if item.rule not in _MAY_CHANGE and item.rule != "in-use":
            text = f"{item.device}: {item.message}" if item.device else item.message
            yield Finding(item.rule, item.claim or full_name(claims[0]), text)


def _node_of(claim: Object, where: Mapping[str, str]) -> str:
    """The node that an allocation is for, or that a pod uses it on (``where``: by uid); else ""."""
    named = selected_node(claim["status"]["allocation"].get("nodeSelector"))
    if named:
        return named
    consumers = [str(item.get("uid")) for item in claim["status"].get("reservedFor") or ()]
    return next((where[uid] for uid in consumers if uid in where), "")


def _unused(snapshot: Snapshot) -> Iterator[Finding]:
    """Claims that are reserved for pods that are gone, or that stay though they were deleted."""
    pods = {pod["metadata"].get("uid"): pod for pod in snapshot.pods}
    for claim in (*snapshot.claims, *snapshot.allocated):
        name, meta = full_name(claim), claim["metadata"]
        reserved = [
            item
            for item in (claim.get("status") or {}).get("reservedFor") or ()
            if item.get("resource") == "pods"
        ]
        living = 0
        for consumer in reserved:
            state = _state(pods.get(consumer.get("uid")))
            living += not state
            if state:
                yield Finding("reserved-for-nobody", name, f"pod {consumer['name']} {state}")
        if meta.get("deletionTimestamp") and not living:
            held = ", ".join(meta.get("finalizers") or ()) or "nothing"
            text = f"was deleted at {meta['deletionTimestamp']}, and is held by {held}"
            yield Finding("not-deleted", name, text)


def _state(pod: Mapping[str, Any] | None) -> str:
    if pod is None:
        return "is gone"
    return f"has ended ({pod['status']['phase']})" if has_ended(pod) else ""
