"""Which scenario begins next beside those that run: the states, the rules, and a pure function.

A scenario is *waiting*, then *running*, then it has ended. A running scenario reports two things
of itself (``loop.Slot``):

- *observing*: it does nothing but check that something stays as it is, let time pass, or wait for
  what it deleted to go, or for what has not happened for seconds. Its slot is free meanwhile.
- *disruptive*: it stops or restarts components, or may do so again. Such a scenario begins
  disruptive and *settles* when everything runs as before.

Invariants, at every moment:

1. At most ``slots + observers`` run, and a scenario begins only while fewer than ``slots`` act. One
   that was observing goes on at once, so for a moment more than ``slots`` may act.
2. While a scenario is disruptive, nobody runs whom it disrupts: pods on nodes of its pool, or for a
   component of the control plane everybody. It begins when these have ended (they are *drained*).
3. Scenarios that use devices of a pool never need more of them together than it has. Nobody uses
   devices beside an exclusive scenario.
4. A reserved node is used by disruptive scenarios alone, one at a time. Nodes are reserved until
   the last of these has ended; then those begin that need the whole target.

Of the scenarios that may begin, the first in the order of the schedule does. When nothing runs one
always may, so every scenario begins in the end. What each rule gains: docs/decisions/0035.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from conformance.engine.schedule.needs import Needs, Reach
from conformance.engine.schedule.pools import Home, NodePool, NodePools
from conformance.seam.values import Capabilities

OBSERVERS = 8
"""How many scenarios may observe beside those that act. Each has threads and watches."""

SLOTS_PER_PROCESSOR = 3
"""How many scenarios keep a processor busy that also has the whole cluster to run: measured, 0035.
"""

SLOTS_ELSEWHERE = 4
"""On a cluster that is somewhere else: more gain little, and its API server has others to serve."""


def choose_slots(capabilities: Capabilities, processors: int | None) -> int:
    """Return how many scenarios may act at once where nobody says.

    Args:
        processors: those of the machine that the cluster and this process share; None: the
            cluster is elsewhere.
    """
    if not capabilities.concurrent:
        return 1
    return SLOTS_ELSEWHERE if processors is None else SLOTS_PER_PROCESSOR * processors


@dataclass(frozen=True, slots=True)
class Waiting:
    """A scenario that has not begun: its id, what it needs and where it may run."""

    id: str
    needs: Needs
    home: Home = Home.COMMON


@dataclass(frozen=True, slots=True)
class Running:
    """A scenario that has begun, its pool, and its present state."""

    scenario: Waiting
    pool: NodePool
    observing: bool = False
    disruptive: bool = False

    @property
    def needs(self) -> Needs:
        return self.scenario.needs


@dataclass(frozen=True, slots=True)
class State:
    """All that the next beginning depends on.

    Attributes:
        waiting: in the order of the schedule.
        slots: how many scenarios may act at once.
        observers: how many may observe beside them.
    """

    waiting: tuple[Waiting, ...]
    running: tuple[Running, ...]
    pools: NodePools
    slots: int
    observers: int


def in_order(scenarios: Iterable[Waiting]) -> list[Waiting]:
    """The most disruptive first, then the longest, so that no long one is left at the end."""
    return sorted(scenarios, key=lambda item: (-item.needs.disrupts, -item.needs.seconds))


def next_to_begin(state: State) -> Running | None:
    """The scenario that begins now, and in which pool; None if none may."""
    acting = sum(not item.observing for item in state.running)
    if acting >= state.slots or len(state.running) >= state.slots + state.observers:
        return None
    reserved = any(
        item.home is Home.RESERVED
        for item in (*state.waiting, *(one.scenario for one in state.running))
    )
    # One that may not begin holds up none behind it: waiting for it costs more (0035).
    for item in state.waiting:
        for pool in _pools_for(item, state.pools, reserved=reserved):
            if may_begin(item.needs, pool, state.running):
                return Running(item, pool, disruptive=item.needs.disrupts is not Reach.NOBODY)
    return None


def _pools_for(item: Waiting, pools: NodePools, *, reserved: bool) -> Collection[NodePool]:
    if not reserved:
        return (pools.whole,)
    return {Home.RESERVED: pools.reserved, Home.COMMON: (pools.common,), Home.WHOLE: ()}[item.home]


def may_begin(needs: Needs, pool: NodePool, running: Collection[Running]) -> bool:
    """Whether a scenario may begin in a pool beside those that run."""
    for other in running:
        if other.disruptive and _disrupts(other.needs, other.pool, needs, pool):
            return False
        if _disrupts(needs, pool, other.needs, other.pool):
            return False
    sharing = [one.needs for one in running if one.needs.uses_nodes and one.pool.overlaps(pool)]
    return not needs.uses_nodes or not sharing or _share([needs, *sharing], pool.capabilities)


def _disrupts(needs: Needs, pool: NodePool, other: Needs, others_pool: NodePool) -> bool:
    if needs.disrupts is Reach.NODE:
        return other.uses_nodes and pool.overlaps(others_pool)
    return needs.disrupts is Reach.CLUSTER


def _share(all_needs: Collection[Needs], capabilities: Capabilities) -> bool:
    """Whether there are devices for all, wherever each gets its own."""
    if any(needs.exclusive for needs in all_needs):
        return False
    total = sum(needs.devices for needs in all_needs)
    return total <= capabilities.free.total and all(
        _left_on_a_node(needs.devices_on_one_node, total - needs.devices, capabilities)
        for needs in all_needs
    )


def _left_on_a_node(wanted: int, taken: int, capabilities: Capabilities) -> bool:
    """Whether one node has so many devices left, wherever the others are taken."""
    # To leave less than is wanted, so many of each node must be taken.
    enough = [count - wanted + 1 for count in capabilities.free.by_node.values()]
    return not wanted or taken < sum(number for number in enough if number > 0)
