"""A drawing of which claim holds which device on which node, for a failed allocation.

The drawing is made of the snapshot that is kept of a failed scenario, or from which an allocation
was made that breaks a rule; so it shows what the scheduler could know, and not what came later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from conformance.results.events.result import ScenarioResult
from kube.base.strictjson import loads
from reference_allocator.api import (
    AllocatedDevice,
    Device,
    DeviceId,
    Node,
    ResourceClaim,
    ResourceSlice,
)
from reference_allocator.api.reading import InputError
from reference_allocator.cluster.gathering import keep_newest
from reference_allocator.errors import AllocationError
from reference_allocator.rules.nodeselector import node_matches
from reference_allocator.snapshot import Snapshot

MAX_NODES = 12
MAX_DEVICES = 48  # The most that is drawn, of a node; the snapshot in the result file has all.


@dataclass(frozen=True, slots=True)
class DrawnDevice:
    """One device.

    Attributes:
        holders: who has it: the pods for which its claims are reserved, or the claim's name.
        claims: its claims, as ``namespace/name``.
        state: ``free`` (no claim has it), ``held``, ``chosen`` (by the decision that is drawn),
            ``twice`` (held by two claims that do not share it).
    """

    id: DeviceId
    holders: tuple[str, ...]
    claims: tuple[str, ...]
    state: str
    tainted: bool

    @property
    def who(self) -> str:
        """The text below the device's name."""
        return ", ".join([*(self.holders or ("free",)), *["tainted"] * self.tainted])


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node, or several that reach the same devices, of whose devices some are left out."""

    name: str
    devices: tuple[DrawnDevice, ...]
    devices_left_out: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn of a moment: nodes, of which some are left out, and claims to be allocated."""

    title: str
    nodes: tuple[DrawnNode, ...]
    waiting: tuple[str, ...]
    nodes_left_out: int


def drawings_of(row: ScenarioResult) -> Iterator[Drawing]:
    """Yield the allocations of a scenario that are against the rules, and the moment it failed."""
    if row.finished is not None and row.compared is not None:
        judged = zip(row.finished.decisions, row.compared.judgements, strict=False)
        for decision, judgement in judged:
            if not judgement.verdict.conformant:
                title = f"{judgement.verdict}: pod {judgement.pod} on {judgement.node}"
                chosen = zip(
                    decision.get("claims", ()), decision.get("allocations", ()), strict=False
                )
                yield from drawing_of(title, decision.get("snapshot"), chosen)
    if "snapshot.json" in row.diagnostics:
        try:
            snapshot = loads(row.diagnostics["snapshot.json"].encode())
        except (ValueError, RecursionError):
            return
        yield from drawing_of("when it failed", snapshot, ())


def drawing_of(
    title: str,
    document: Any,
    chosen: Iterable[tuple[Any, Any]],
    most_nodes: int = MAX_NODES,
    most_devices: int = MAX_DEVICES,
) -> Iterator[Drawing]:
    """Yield the drawing; none where the text is no snapshot (the page shows the text anyway)."""
    try:
        snapshot = Snapshot.from_dict(document)
        new = [
            ResourceClaim.from_dict({**claim, "status": {"allocation": allocation}})
            for claim, allocation in chosen
        ]
        reached = _devices_by_node(snapshot)
    except (InputError, AllocationError, TypeError):
        return
    devices = _draw_devices(snapshot, new)
    nodes = []
    for name, ids in reached.items():
        drawn = [devices[item] for item in ids]
        drawn.sort(key=lambda item: item.state == "free")  # what is held is not cut
        drawn_ids = {item.id for item in drawn[:most_devices]}
        drawn_devices = tuple(devices[item] for item in ids if item in drawn_ids)
        nodes.append(DrawnNode(name, drawn_devices, len(drawn) - len(drawn_devices)))
    nodes.sort(key=lambda node: all(item.state == "free" for item in node.devices))
    waiting = [] if new else [ResourceClaim.from_dict(item).ref for item in snapshot.claims]
    if nodes:
        left_out = len(nodes[most_nodes:])
        yield Drawing(title, tuple(nodes[:most_nodes]), tuple(waiting), left_out)


def _devices_by_node(snapshot: Snapshot) -> dict[str, list[DeviceId]]:
    """Return node -> the devices that it reaches; also the nodes that reach none."""
    nodes = [Node.from_dict(item) for item in snapshot.nodes]
    devices_by_node: dict[str, list[DeviceId]] = {node.name: [] for node in nodes}
    pools: dict[Any, list[ResourceSlice]] = {}
    for item in map(ResourceSlice.from_dict, snapshot.slices):
        keep_newest(pools.setdefault(item.pool_id, []), item)
    for item in (pool_devices for pool in pools.values() for pool_devices in pool):
        name = "" if item.per_device_node_selection else _name_nodes(item, nodes)
        for device in item.devices:
            key = DeviceId(item.driver, item.pool, device.name)
            devices_by_node.setdefault(name or _name_nodes(device, nodes), []).append(key)
    return devices_by_node


def _name_nodes(owner: ResourceSlice | Device, nodes: Sequence[Node]) -> str:
    """Return the nodes that a slice or a device names, in words."""
    at = (owner.node_name, owner.all_nodes, owner.node_selector)
    names = [node.name for node in nodes if node_matches(node, *at)]
    if len(names) == len(nodes) > 1:
        return "every node"
    return ", ".join(names) or f"{owner.node_name or 'no node'} (not in the snapshot)"


def _draw_devices(snapshot: Snapshot, new: Sequence[ResourceClaim]) -> dict[DeviceId, DrawnDevice]:
    """Return every published device, with the pods and claims that have it."""
    reserved = {ResourceClaim.from_dict(item).ref: _pods_of(item) for item in snapshot.allocated}
    results: dict[DeviceId, list[tuple[ResourceClaim, AllocatedDevice]]] = {}
    for claim in (*map(ResourceClaim.from_dict, snapshot.allocated), *new):
        for result in claim.results or ():
            if not result.admin_access:  # it takes nothing away
                results.setdefault(result.id, []).append((claim, result))
    drawn = {}
    for item in map(ResourceSlice.from_dict, snapshot.slices):
        for device in item.devices:
            key = DeviceId(item.driver, item.pool, device.name)
            having = results.get(key, [])
            tainted = any(taint.effect != "None" for taint in device.taints)
            state = "free"
            if len(having) > 1 and any(result.share_id is None for _, result in having):
                state = "twice"
            elif having:
                state = "chosen" if any(claim in new for claim, _ in having) else "held"
            holders = [reserved.get(claim.ref) or (claim.name,) for claim, _ in having]
            claims = tuple(claim.ref for claim, _ in having)
            drawn[key] = DrawnDevice(
                key, tuple(chain.from_iterable(holders)), claims, state, tainted
            )
    return drawn


def _pods_of(claim: Mapping[str, Any]) -> tuple[str, ...]:
    status = claim.get("status") or {}
    return tuple(f"{item.get('name')}" for item in status.get("reservedFor") or ())
