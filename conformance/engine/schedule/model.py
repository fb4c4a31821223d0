"""Which scenario begins next beside those that run: the model, and a pure function on it.

A scenario is *waiting*, then *running*, then it has ended. While it runs, two things are known of
it, which it says itself (``loop.Slot``):

- *observing*: it does nothing but see that something stays as it is, let time pass, or see that
  what it deleted goes. Meanwhile its slot is another's.
- *disruptive*: it stops components, or may yet. A scenario that disrupts anybody begins so, and
  *settles* when all runs as before; what it does after that does not disrupt anybody.

Invariants, at every moment:

1. No more than ``slots + OBSERVERS`` run. A scenario begins only while fewer than ``slots`` act;
   one that was observing goes on at once, so that for a moment more may act.
2. While a scenario is disruptive, nobody runs whom it disrupts: those with pods on nodes of its
   pool; for a component of the control plane, all. It begins when they have ended (the pool is
   *drained*), and they begin when it has settled.
3. Those that use devices of a pool never need more of them together than it has. Beside an
   exclusive one no other uses any.
4. Reserved pools are used by disruptive scenarios alone, one at a time. They are reserved until
   the last of these has ended; only then those begin that need the whole target.

Of those that may begin, the first in the order of the schedule does. So nobody waits while all it
needs is free, and every scenario begins in the end: when nothing runs, one always may. What each
rule gains is in docs/decisions/0035.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from conformance.engine.schedule.needs import Needs, Reach
from conformance.engine.schedule.pools import Home, NodePool, NodePools
from conformance.targets.base import Capabilities

OBSERVERS = 4
"""How many scenarios may observe beside those that act. Each has threads and watches."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A scenario that has not begun: its id, what it needs and where it may run."""

    id: str
    needs: Needs
    home: Home = Home.COMMON


@dataclass(frozen=True, slots=True)
class Running:
    """A scenario that has begun, the pool in which it runs, and what is known of it now."""

    scenario: Waiting
    pool: NodePool
    observing: bool = False
    disruptive: bool = False

    @property
    def needs(self) -> Needs:
        """What the scenario needs."""
        return self.scenario.needs


@dataclass(frozen=True, slots=True)
class State:
    """All that the next beginning depends on.

    Attributes:
        waiting: those that have not begun, in the order of the schedule.
        slots: how many scenarios may act at once.
        observers: how many may observe beside them.
    """

    waiting: tuple[Waiting, ...]
    running: tuple[Running, ...]
    pools: NodePools
    slots: int
    observers: int


def in_order(scenarios: Iterable[Waiting]) -> list[Waiting]:
    """Those that disrupt most first, then the longest; alike ones stay as they are.

    Others can begin beside the end of a disruptive one, and no long one is left over at the end.
    """
    return sorted(scenarios, key=lambda item: (-item.needs.disrupts, -item.needs.seconds))


def next_to_begin(state: State) -> Running | None:
    """The scenario that begins now, and in which pool; None: none may."""
    acting = sum(not item.observing for item in state.running)
    if acting >= state.slots or len(state.running) >= state.slots + state.observers:
        return None
    reserved = any(
        item.home is Home.RESERVED
        for item in (*state.waiting, *(one.scenario for one in state.running))
    )
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
    return total <= capabilities.devices and all(
        _left_on_a_node(needs.devices_on_one_node, total - needs.devices, capabilities)
        for needs in all_needs
    )


def _left_on_a_node(wanted: int, taken: int, capabilities: Capabilities) -> bool:
    """Whether one node has so many devices left, wherever the others are taken."""
    # To leave less than is wanted, so many of each node must be taken.
    enough = [count - wanted + 1 for count in capabilities.devices_on.values()]
    return not wanted or taken < sum(number for number in enough if number > 0)
