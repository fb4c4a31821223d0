"""Nodes of a cluster that are kept for scenarios which disturb them; others run on meanwhile.

Who stops a driver or restarts a kubelet disturbs all pods of that node. On one node such scenarios
are a chain, for which everybody else waits. Where a cluster has several, some are kept for them:
each runs there as if the cluster had no other node, and the rest is everybody else's until no such
scenario is left. What pods of both parts get is a node affinity; nothing is done to nodes.

Only a cluster whose components the suite may stop is parted: other clusters have no such scenarios.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from conformance.engine.disruption import disturbed
from conformance.scenario.driver.variables import worker_of
from conformance.scenario.expectations.objects import ObjectsExpectation
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Spec
from conformance.targets.seam.components import OF_A_NODE
from conformance.targets.seam.values import DISTINCT_DEVICES, Capabilities


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some nodes of a target, or all.

    Attributes:
        capabilities: of the target, as if it had no others.
        nodes: to which pods of scenarios are confined; empty where that is not needed.
        kept: for scenarios that disturb nodes.
    """

    capabilities: Capabilities
    nodes: tuple[str, ...] = ()
    kept: bool = False


def whole(capabilities: Capabilities) -> list[Part]:
    """A target that is not parted."""
    return [Part(capabilities)]


def divided(capabilities: Capabilities) -> list[Part]:
    """A part for everybody, with the node that has most devices, and up to two thirds kept.

    Nothing is kept of one node, nor where nodes share devices. No node is on which less is free: it
    may be that somebody else's pods have the rest, and they would be stopped.
    """
    on = capabilities.devices_on
    worker = worker_of(on)
    if worker is None or sum(on.values()) != capabilities.devices:
        return whole(capabilities)
    alike = sorted(name for name in on if name != worker and on[name] == on[worker])
    kept = alike[max(0, len(alike) - 2 * len(on) // 3) :]
    if not kept:
        return whole(capabilities)
    rest = tuple(name for name in capabilities.nodes if name not in kept)
    alone = replace(
        capabilities,
        abilities=capabilities.abilities - {DISTINCT_DEVICES},
        lacking={**capabilities.lacking, DISTINCT_DEVICES: "known of another node"},
        one_device=("", ""),
    )
    parts = [Part(_with(alone, [name]), (name,), kept=True) for name in kept]
    return [Part(_with(capabilities, rest), rest), *parts]


def _with(capabilities: Capabilities, nodes: Collection[str]) -> Capabilities:
    on = {name: count for name, count in capabilities.devices_on.items() if name in nodes}
    beside = {n: count for n, count in capabilities.other_devices_on.items() if n in nodes}
    return replace(
        capabilities,
        nodes=tuple(nodes),
        devices=sum(on.values()),
        devices_on=on,
        other_devices_on=beside,
    )


def overlap(part: Part, other: Part) -> bool:
    """Whether two parts have nodes in common."""
    return part is other or not (part.nodes and other.nodes)


def reaches(spec: Spec, part: Part, other: Part) -> bool:
    """Whether what a scenario of one part disturbs is something of another one's."""
    return overlap(part, other) or not disturbed(spec) <= OF_A_NODE


def _wants_a_node(spec: Spec) -> bool:
    """Whether a scenario wants no others on its node, and does not mind them elsewhere."""
    return _disturbs_nodes(spec) or (spec.requires.exclusive and not disturbed(spec))


def _looks_at_all_nodes(spec: Spec) -> bool:
    """Whether a scenario of a driver's devices looks for slices, and does not say of which node."""
    return spec.tier != "allocation" and any(
        item.objects.kind == "ResourceSlice"
        and not item.objects.owned_by
        and "spec.nodeName" not in (item.objects.fields or {})
        for step in spec.steps
        for item in step.expect or ()
        if isinstance(item, ObjectsExpectation)
    )


def _disturbs_nodes(spec: Spec) -> bool:
    roles = disturbed(spec)
    return spec.tier != "allocation" and bool(roles) and roles <= OF_A_NODE


class Belonging:
    """Which part of a target each of some scenarios runs in.

    In the kept ones run those that want a node for themselves and nothing of other nodes. Who needs
    more than is left for everybody, looks at the slices of all nodes, or disturbs nodes and does
    not do with one, waits until nothing is kept any longer.

    Args:
        lacks: why a scenario cannot run in a part, None if it can.
    """

    def __init__(
        self,
        scenarios: Sequence[LoadedScenario],
        capabilities: Capabilities,
        lacks: Callable[[LoadedScenario, Part], str | None],
    ) -> None:
        self._whole = whole(capabilities)
        self._parts = divided(capabilities)
        fit = [
            item
            for item in scenarios
            if _wants_a_node(item.scenario.spec)
            and not _looks_at_all_nodes(item.scenario.spec)
            and self._runs(item, self._parts[1:], lacks)
        ]
        # Alone, those that want no others are not worth it.
        worth = any(_disturbs_nodes(item.scenario.spec) for item in fit)
        self._left = {item.id for item in fit} if worth else set()
        common = self._parts[:1]
        self._wide = {
            item.id
            for item in scenarios
            if item.id not in self._left
            and self._runs(item, self._whole, lacks)
            and (
                _disturbs_nodes(item.scenario.spec)
                or _looks_at_all_nodes(item.scenario.spec)
                or not self._runs(item, common, lacks)
            )
        }

    @staticmethod
    def _runs(
        loaded: LoadedScenario,
        parts: Sequence[Part],
        lacks: Callable[[LoadedScenario, Part], str | None],
    ) -> bool:
        return bool(parts) and all(lacks(loaded, part) is None for part in parts)

    def parts(self) -> list[Part]:
        """In which scenarios may begin now; the first is everybody's."""
        return self._parts if self._left else self._whole

    def takes(self, part: Part, loaded: LoadedScenario) -> bool:
        """Whether a scenario may begin in a part."""
        if not self._left:
            return True
        return part.kept is (loaded.id in self._left) and loaded.id not in self._wide

    def ended(self, loaded: LoadedScenario) -> None:
        """Note that a scenario is over: without one that needs it nothing is kept any longer."""
        self._left.discard(loaded.id)
