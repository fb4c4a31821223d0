"""The findings of a cluster that changes: what a change touches is judged again, and nothing else.

A claim is judged with all that share a pool with it. What is known grows with the cluster, and not
with time: findings are kept by claim and pool, and are forgotten with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from conformance.compare.audit.once import (
    NOT_JUDGED,
    SLOW,
    Finding,
    claim_findings,
    node_of,
    nodes_by_pod,
    pool_of,
    pools_of,
    slice_findings,
)
from conformance.compare.evidence import Object, ask_reference, full_name, key_of, name_of
from conformance.targets.cluster.snapshots import allocation_of
from kube.base.errors import UsageError
from reference_allocator.features import Features
from reference_allocator.snapshot import Snapshot

SECONDS = 0.5
"""For so long what is wrong must stay so: watches of different kinds are in no order."""

_CLAIM, _SLICE, _CLASS, _NODE, _POD = (
    "ResourceClaim",
    "ResourceSlice",
    "DeviceClass",
    "Node",
    "Pod",
)
_Pool = tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class News:
    """What is said after a look: what is new, and what was reported and has passed.

    ``due``: when to look again though nothing changes, None if nothing waits for its time.
    """

    new: tuple[Finding, ...]
    passed: tuple[Finding, ...]
    due: float | None


class Auditor:
    """Judges a cluster as it changes.

    Args:
        settle: seconds for what controllers put right themselves (``audit.SLOW``).
        sees_pods: whether pods are among the changes; without them none is called gone.

    Attributes:
        broken: whether anything was wrong at any time.
        allocated: how many claims have devices.
    """

    def __init__(
        self, kubernetes: str, features: Features, settle: float, sees_pods: bool = True
    ) -> None:
        self.broken = False
        self.allocated = 0
        self._empty = Snapshot(kubernetes, features)
        self._settle = settle
        self._sees_pods = sees_pods
        self._objects: dict[str, dict[str, Object]] = defaultdict(dict)  # kind -> uid -> object
        self._users: dict[_Pool, set[str]] = defaultdict(set)  # uids of claims
        self._slices: dict[_Pool, set[str]] = defaultdict(set)  # uids of slices
        self._consumed: dict[str, set[str]] = defaultdict(set)  # uid of a pod -> uids of claims
        self._claims: set[str] = set()  # uids of claims to be judged again
        self._names: set[str] = set()  # theirs, and those of claims that are gone
        self._pools: set[_Pool] = set()  # pools whose slices are to be judged again
        self._since: dict[str, dict[Finding, float]] = {}  # subject -> finding -> since when
        self._reported: set[Finding] = set()

    @property
    def findings(self) -> frozenset[Finding]:
        """The findings that have been reported and are still so."""
        return frozenset(self._reported)

    def take_changes(self, changed: Mapping[tuple[str, str], Object | None]) -> None:
        """Take objects as they are now, by kind and uid; None: it is gone."""
        pools: set[_Pool] = set()
        nodes: set[str] = set()
        for (kind, uid), obj in changed.items():
            earlier, now = self._objects[kind].get(uid), _unversioned(obj)
            if earlier == now:
                continue
            if now is None:
                del self._objects[kind][uid]
            else:
                self._objects[kind][uid] = now
            both = [item for item in (earlier, now) if item is not None]
            if kind == _CLAIM:
                self._names |= set(map(full_name, both))
                self._claims.add(uid)
                self.allocated += _has_devices(now) - _has_devices(earlier)
                pools |= {pool for item in both for pool in pools_of(item)}
                _reindex(self._users, pools_of, uid, earlier, now)
                _reindex(self._consumed, _consumer_uids, uid, earlier, now)
            elif kind == _SLICE:
                touched = {pool for item in both for pool in _slice_pools(item)}
                pools |= touched
                self._pools |= touched
                _reindex(self._slices, _slice_pools, uid, earlier, now)
            elif kind == _POD:
                self._claims |= self._consumed.get(uid, set())
            elif kind == _NODE:
                nodes |= set(map(name_of, both))
            elif kind == _CLASS:
                self._claims |= self._objects[_CLAIM].keys()
        for pool in pools:
            self._claims |= self._users.get(pool, set())
        if nodes:
            self._take_nodes(nodes)

    def _take_nodes(self, nodes: set[str]) -> None:
        where = nodes_by_pod(self._objects[_POD].values())
        for uid, claim in self._objects[_CLAIM].items():
            if allocation_of(claim) and node_of(claim, where) in nodes:
                self._claims.add(uid)
        for item in self._objects[_SLICE].values():
            if item["spec"].get("nodeName") in nodes:
                self._pools |= _slice_pools(item)

    def judge(self, now: float) -> News:
        """Judge what changed since the last time; ``now`` is of any clock, in seconds."""
        claims_by_uid = self._objects[_CLAIM]
        claims = [claims_by_uid[uid] for uid in self._claims if uid in claims_by_uid]
        names = {*self._names, *map(full_name, claims)}
        findings: dict[str, set[Finding]] = defaultdict(set)
        for item in (*self._claim_findings(claims), *self._slice_findings()):
            findings[item.subject].add(item)
        for subject in {*names, *("/".join(pool) for pool in self._pools)}:
            since_when = self._since.pop(subject, {})
            if subject in findings:
                self._since[subject] = {
                    finding: since_when.get(finding, now) for finding in findings[subject]
                }
        self._claims, self._names, self._pools = set(), set(), set()
        return self._news(now)

    def _news(self, now: float) -> News:
        ripe: set[Finding] = set()
        due: list[float] = []
        for item, since in (
            (a, b) for findings in self._since.values() for a, b in findings.items()
        ):
            until = since + (self._settle if item.rule in SLOW else SECONDS)
            if until <= now or item in self._reported:
                ripe.add(item)
            else:
                due.append(until)
        new, passed = sorted(ripe - self._reported, key=str), sorted(self._reported - ripe, key=str)
        self._reported = ripe
        self.broken = self.broken or any(item.rule != NOT_JUDGED for item in new)
        return News(tuple(new), tuple(passed), min(due, default=None))

    def _claim_findings(self, claims: list[Object]) -> Iterable[Finding]:
        if not claims:
            return ()
        judged = set(map(full_name, claims))
        snapshot = self._relevant_snapshot(claims)
        try:
            return ask_reference(lambda: claim_findings(snapshot, self._sees_pods, judged))
        except UsageError as error:
            return [Finding(NOT_JUDGED, name, str(error)) for name in sorted(judged)]

    def _slice_findings(self) -> Iterator[Finding]:
        nodes = set(map(name_of, self._objects[_NODE].values())) if self._pools else set()
        uids = [uid for pool in self._pools for uid in self._slices.get(pool, ())]
        slices = (self._objects[_SLICE][uid] for uid in uids)
        yield from slice_findings(slices, nodes, self._empty.features)

    def _relevant_snapshot(self, claims: list[Object]) -> Snapshot:
        """Return what the judgement of some claims depends on: nothing else of the cluster."""
        objects = self._objects
        pools = sorted({pool for claim in claims for pool in pools_of(claim)})
        users = {uid for pool in pools for uid in self._users[pool]}
        near = [*claims, *map(objects[_CLAIM].__getitem__, users)]
        allocated = {key_of(item): item for item in near if allocation_of(item)}
        pods = (objects[_POD].get(uid) for claim in claims for uid in _consumer_uids(claim))
        return Snapshot(
            self._empty.kubernetes,
            self._empty.features,
            tuple(objects[_SLICE][uid] for pool in pools for uid in self._slices.get(pool, ())),
            tuple(objects[_CLASS].values()),
            tuple(objects[_NODE].values()),
            tuple(claim for claim in claims if key_of(claim) not in allocated),
            tuple(allocated[key] for key in sorted(allocated)),
            tuple(pod for pod in pods if pod is not None),
        )


def _unversioned(obj: Object | None) -> Object | None:
    if obj is None:
        return None
    meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": meta}


def _slice_pools(item: Object) -> frozenset[_Pool]:
    return frozenset({pool_of(item)})


def _consumer_uids(claim: Object) -> frozenset[str]:
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    return frozenset(str(item.get("uid")) for item in reserved if item.get("resource") == "pods")


def _has_devices(claim: Object | None) -> bool:
    return claim is not None and bool(pools_of(claim))


def _reindex(
    index: dict[T, set[str]],
    keys: Callable[[Object], Iterable[T]],
    uid: str,
    earlier: Object | None,
    now: Object | None,
) -> None:
    """Put an object below its keys of now; a key without objects is forgotten."""
    for key in keys(earlier) if earlier is not None else ():
        index[key].discard(uid)
        if not index[key]:
            del index[key]
    for key in keys(now) if now is not None else ():
        index[key].add(uid)
