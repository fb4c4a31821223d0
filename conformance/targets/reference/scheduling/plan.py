"""What becomes of a pod in one attempt to schedule it."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.targets.base import Obj


@dataclass(slots=True)
class Plan:
    """A pod's claims, and what was found for them.

    Attributes:
        claims: the claims that the pod names, in its order.
        node: the node that was chosen, None if there is none.
        to_allocate: claims that get an allocation now; the special one is the last.
        allocations: their allocations, in the same order.
        special: the claim for extended resources, not stored yet.
        mappings: which container gets the devices of which of the special claim's requests.
        shares: what the devices take of the node's own resources, for the pod's status.
        unavailable: claims whose devices cannot be used on a node that was looked at.
    """

    claims: list[Obj]
    node: Obj | None = None
    to_allocate: list[Obj] = field(default_factory=list)
    allocations: tuple[Obj, ...] = ()
    special: Obj | None = None
    mappings: list[Obj] = field(default_factory=list)
    shares: list[Obj] = field(default_factory=list)
    unavailable: list[Obj] = field(default_factory=list)
