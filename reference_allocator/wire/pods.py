"""The pods of an allocation question on one node, one after the other.

As the scheduler has them: a pod that fits keeps what it is given while the next is looked at, one
that does not waits and takes nothing. Where nodes are asked about, each is by itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.api import Node, NodeSelector, ResourceClaim, reading
from reference_allocator.errors import AllocationError
from reference_allocator.extended import extended_claim, lacks_resource
from reference_allocator.rules.nodeselector import node_matches
from reference_allocator.wire.lines import Json

_EXTENDED: Final = "<extended-resources>"
"""The name of the claim for extended resources while it is in memory only, as upstream's."""

Given = Mapping[int, tuple[Json, NodeSelector | None]]
"""Position of a claim that has devices -> its allocation, and where that can be used."""

ClaimKey = tuple[str, str]
"""Namespace and name of a claim."""


@dataclass(frozen=True, slots=True)
class AskedPod:
    """A pod of a question.

    Attributes:
        claims: its claims, in its order; ``sources`` has them as they were written.
        given: what its claims have already.
        pod: its v1 Pod, where its containers ask for extended resources.
    """

    claims: tuple[ResourceClaim, ...]
    sources: tuple[Json, ...]
    given: Given
    pod: Json | None = None

    @classmethod
    def read(
        cls, claims: Sequence[ResourceClaim], sources: Sequence[Json], pod: Json | None
    ) -> Self:
        """Read what claims have. Raises InputError: a node selector has not its form."""
        given: dict[int, tuple[Json, NodeSelector | None]] = {}
        for index, (claim, source) in enumerate(zip(claims, sources, strict=True)):
            if claim.results is not None:
                allocation = source["status"]["allocation"]
                try:
                    selector = reading.read_child(
                        allocation, "nodeSelector", NodeSelector.from_dict
                    )
                except reading.InputError as error:
                    raise error.with_parent("claims", index, "status", "allocation") from None
                given[index] = allocation, selector
        return cls(tuple(claims), tuple(sources), given, pod)


class PodRow:
    """The pods of one question, to be decided on one node after the other.

    Args:
        allocator: knows what is in use before the first pod.
        pods: in the order in which they come; at least one.
        classes: extended resource -> the class that provides it.

    Attributes:
        first: the first pod.
    """

    def __init__(
        self, allocator: Allocator, pods: Sequence[AskedPod], classes: Mapping[str, str]
    ) -> None:
        self._allocator, self._pods, self._classes = allocator, pods, classes
        self.first = pods[0]

    def decide_following(
        self, node: Node, source: Json, first: Outcome, seconds: float
    ) -> list[Outcome]:
        """Return what the pods after the first are given, each beside what came before it.

        ``first``: what `decide` has answered for the first.
        """
        if len(self._pods) == 1:
            return []
        outcomes = [first]
        made: dict[ClaimKey, Json] = {}
        for number, (before, pod) in enumerate(zip(self._pods, self._pods[1:], strict=False)):
            self._keep(before, outcomes[-1], made, number)
            sources = [_with_devices(item, made) for item in pod.sources]
            claims = [ResourceClaim.from_dict(item) for item in sources]
            asked = AskedPod.read(claims, sources, pod.pod)
            outcomes.append(self.decide(asked, node, source, time.monotonic() + seconds))
        for namespace, name in made:
            self._allocator.index.remove_claim(namespace, name)
        return outcomes[1:]

    def _keep(
        self, pod: AskedPod, outcome: Outcome, made: dict[ClaimKey, Json], number: int
    ) -> None:
        """Record what a pod was given: in the index, and as key -> allocation in ``made``."""
        if outcome.kind != "allocated":
            return
        extended = {"metadata": {"namespace": "", "name": f"{_EXTENDED}{number}"}, "spec": {}}
        for position, allocation in enumerate(outcome.allocations):
            own = pod.sources[position] if position < len(pod.sources) else extended
            claim = ResourceClaim.from_dict({**own, "status": {"allocation": allocation}})
            key = claim.namespace, claim.name
            if position not in pod.given and key not in made:
                made[key] = allocation
                self._allocator.index.put_claim(claim)

    def decide(self, pod: AskedPod, node: Node, source: Json, deadline: float) -> Outcome:
        """Return what a pod is given on a node where all that it has can be used; nothing stays.

        Args:
            source: the node as it was written.
            deadline: the value of `time.monotonic()` at which the search gives up.
        """
        claims = pod.claims
        if pod.pod is not None:
            if lacks_resource(pod.pod, source, self._classes):
                return Outcome("none")
            extended = extended_claim(pod.pod, source, self._classes)
            if extended is not None:
                claims = (*claims, ResourceClaim.from_dict(extended.claim))
        if not pod.given:
            return (
                self._allocator.allocate(node, claims, deadline)
                if claims or pod.pod is None
                else Outcome("allocated")
            )
        try:
            for _, selector in pod.given.values():
                if selector is not None and not node_matches(node, None, False, selector):
                    return Outcome("none")
        except AllocationError as error:
            return Outcome("error", error=str(error))
        pending = [claim for index, claim in enumerate(claims) if index not in pod.given]
        outcome = (
            self._allocator.allocate(node, pending, deadline) if pending else Outcome("allocated")
        )
        if outcome.kind != "allocated":
            return outcome
        results = iter(outcome.allocations)
        return replace(
            outcome,
            allocations=tuple(
                pod.given[index][0] if index in pod.given else next(results)
                for index in range(len(claims))
            ),
        )


def _with_devices(claim: Json, made: Mapping[ClaimKey, Json]) -> Json:
    """Return a claim with what a pod before was given for it."""
    metadata: Mapping[str, Any] = claim.get("metadata") or {}
    allocation = made.get((metadata.get("namespace") or "", metadata.get("name") or ""))
    return claim if allocation is None else {**claim, "status": {"allocation": allocation}}
