"""Distributes a plan over several runs, so that each scenario is in exactly one of them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from conformance.engine.events.run import ShardPlan
from conformance.engine.options import Shard
from conformance.engine.schedule.needs import least_seconds
from conformance.engine.setup import planned
from conformance.errors import UsageError
from conformance.scenario.loader import LoadedScenario
from conformance.text import counted

EACH_SECONDS = 1.0
"""About what a scenario takes beside the known times: a namespace, its cleanup."""


def shard_of(
    scenarios: Sequence[LoadedScenario], shard: Shard | None
) -> tuple[list[LoadedScenario], ShardPlan | None]:
    """The scenarios of a shard in the order given, and the plan for the header.

    The longest come first, each to the shard with the least so far. The same scenarios give the
    same shards, whatever their order.

    Raises:
        UsageError: there are fewer scenarios than shards.
    """
    if shard is None:
        return list(scenarios), None
    if len(scenarios) < shard.count:
        raise UsageError(
            f"--shard {shard}: {counted(len(scenarios), 'scenario')} cannot be dealt to"
            f" {shard.count} shards; ask for fewer shards or more scenarios"
        )
    seconds = {item.id: EACH_SECONDS + least_seconds(item.scenario.spec) for item in scenarios}
    loads = [(0.0, index) for index in range(1, shard.count + 1)]
    dealt: dict[str, int] = {}
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        load, index = loads[0]
        dealt[name] = index
        heapq.heapreplace(loads, (load + seconds[name], index))
    mine = [item for item in scenarios if dealt[item.id] == shard.index]
    others = [planned(item) for item in scenarios if dealt[item.id] != shard.index]
    others.sort(key=lambda item: item.id)
    return mine, ShardPlan(shard.index, shard.count, tuple(others))
