"""Node pools: nodes that are reserved for scenarios which disrupt them.

A scenario that stops a driver or reboots a node disrupts all pods of that node, so on one node all
others wait. Where a cluster has several nodes with devices, up to two thirds of these are pools of
their own. A disruptive scenario runs in one of them as if the cluster had no other node, beside
all others in the common pool. A node affinity confines pods to their pool; nodes stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum

from conformance.engine.schedule.needs import Needs, Reach
from conformance.scenario.driver.variables import worker_of
from conformance.seam.abilities import Ability
from conformance.seam.values import Capabilities


@dataclass(frozen=True, slots=True)
class NodePool:
    """Some nodes of a target, or all.

    Attributes:
        capabilities: of the target, as if it had no other nodes.
        nodes: to which pods are confined; empty if the pool is the whole target.
        reserved: for one disruptive scenario at a time.
    """

    capabilities: Capabilities
    nodes: tuple[str, ...] = ()
    reserved: bool = False

    def overlaps(self, other: NodePool) -> bool:
        return not self.nodes or not other.nodes or self.nodes == other.nodes


@dataclass(frozen=True, slots=True)
class NodePools:
    """How a target is divided while nodes are reserved.

    Attributes:
        common: for everybody else; the whole if nothing is reserved.
        reserved: of one node each.
    """

    whole: NodePool
    common: NodePool
    reserved: tuple[NodePool, ...] = ()

    @classmethod
    def of(cls, capabilities: Capabilities) -> NodePools:
        """Reserve up to two thirds of the nodes with devices.

        None if nodes share devices or the target runs one scenario at a time; never the worker
        (``${worker.name}``), and no node with fewer free devices: pods that are not ours may use
        the others, and would be stopped with their node.
        """
        whole = NodePool(capabilities)
        devices = capabilities.free.by_node
        worker = worker_of(devices)
        shared = sum(devices.values()) != capabilities.free.total
        if worker is None or shared or not capabilities.concurrent:
            return cls(whole, whole)
        alike = sorted(n for n in devices if n != worker and devices[n] == devices[worker])
        # At most two thirds: others need nodes, too. What it gains: docs/decisions/0035.
        chosen = alike[max(0, len(alike) - 2 * len(devices) // 3) :]
        if not chosen:
            return cls(whole, whole)
        common_nodes = tuple(name for name in capabilities.nodes if name not in chosen)
        return cls(
            whole,
            NodePool(_of_nodes(capabilities, common_nodes), common_nodes),
            tuple(
                NodePool(_of_node(capabilities, node), (node,), reserved=True) for node in chosen
            ),
        )


def _of_node(capabilities: Capabilities, name: str) -> Capabilities:
    """As if there were no other: its last device may not be one that can be asked for alone."""
    capabilities_of_node = _of_nodes(capabilities, [name])
    free = capabilities_of_node.free
    last_device = free.last_by_node.get(name)
    without = {Ability.DISTINCT_DEVICES} if last_device is None else set[Ability]()
    if last_device is None or not last_device.shared:
        without.add(Ability.SHARED_DEVICES)
    why = dict.fromkeys(map(str, without), "known of another node")
    free = replace(free, abilities=free.abilities - without, lacking={**free.lacking, **why})
    return replace(capabilities_of_node, free=free)


def _of_nodes(capabilities: Capabilities, nodes: Collection[str]) -> Capabilities:
    return replace(capabilities, nodes=tuple(nodes), free=capabilities.free.select_nodes(nodes))


class Home(Enum):
    """Which pools a scenario may run in.

    Members:
        RESERVED: any of the reserved ones.
        COMMON: what is not reserved; the whole target when nothing is reserved any longer.
        WHOLE: the whole target, when nothing is reserved any longer.
    """

    RESERVED = "reserved"
    COMMON = "common"
    WHOLE = "whole"


def home_of(needs: Needs, pools: NodePools, lacks: Callable[[NodePool], str | None]) -> Home:
    """Which pools a scenario may run in.

    The whole target is for scenarios that need more than the common pool has, look at the slices
    of all nodes, or disrupt several nodes. One that cannot run on this target at all is common: it
    is skipped at once.
    ``lacks``: why the scenario cannot run in a pool, None if it can.
    """
    disrupts_node = needs.uses_nodes and needs.disrupts is Reach.NODE
    if not pools.reserved or lacks(pools.whole) is not None:
        return Home.COMMON
    if disrupts_node and not needs.all_nodes and not any(map(lacks, pools.reserved)):
        return Home.RESERVED
    if disrupts_node or needs.all_nodes or lacks(pools.common):
        return Home.WHOLE
    return Home.COMMON
