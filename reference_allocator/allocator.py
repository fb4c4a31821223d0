"""The decision: which devices do these claims get on this node?

One `Allocator` answers for any number of nodes and pods, as upstream's structured.Allocator does;
what it knows of the cluster is in its `Index`, which can be kept up to date between decisions. It
reads v1 objects as they are: no defaulting happens here (`reference_allocator.api.defaulting` does
that, as the API server would).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from reference_allocator.api import Node, ResourceClaim
from reference_allocator.api.reading import InputError, read_all
from reference_allocator.errors import AllocationError, NodeAllocationError, SearchTimeoutError
from reference_allocator.index import Index
from reference_allocator.matching.matcher import Matcher
from reference_allocator.matching.resolved import ClaimRequests
from reference_allocator.search.backtracking import Search
from reference_allocator.search.result import (
    ShareIds,
    allocation_results,
    derived_share_id,
)
from reference_allocator.snapshot import Snapshot

Object = Mapping[str, Any]
"""A Kubernetes object as JSON."""

Kind = Literal["allocated", "none", "nodeError", "error", "timeout"]


_KINDS: Final[Mapping[type[Exception], Kind]] = {
    AllocationError: "error",
    NodeAllocationError: "nodeError",
    SearchTimeoutError: "timeout",
}


@dataclass(slots=True)
class Outcome:
    """The answer of one `Allocator.allocate`.

    Attributes:
        kind: `allocated`; `none`: not on this node, try others; `nodeError`: not on this node, and
            something is wrong there; `error`: fatal for the pod, do not try other nodes; `timeout`:
            the deadline passed.
        allocations: for `allocated` one v1 AllocationResult per claim, in the same order.
        error: the text of an error, as upstream words it.
        steps: how many partial solutions the search looked at.
    """

    kind: Kind
    allocations: tuple[dict[str, Any], ...] = ()
    error: str = ""
    steps: int = 0


class Allocator:
    """An allocator of claims in one cluster, as upstream's structured.Allocator. Not thread-safe.

    Wherever a JSON object is taken, the value that was read from it (`reference_allocator.api`) may
    be given instead, so that what several allocators or decisions share is read once.

    Args:
        index: the state of the cluster; each decision is made on it as it is at that moment.
        share_ids: makes share ids; by default they depend on claim and device only.
    """

    def __init__(self, index: Index, *, share_ids: ShareIds = derived_share_id) -> None:
        self.index = index
        self.share_ids = share_ids
        self._matcher = Matcher(index.features, index.selectors)
        self._search = Search(self._matcher)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Allocator:
        """Return an allocator that decides in the cluster of a snapshot; raises as `Index`."""
        return cls(
            Index(
                snapshot.features,
                snapshot.slices,
                snapshot.device_classes,
                snapshot.allocated,
                kubernetes=snapshot.kubernetes,
            )
        )

    def allocate(
        self,
        node: Object | Node,
        claims: Sequence[Object | ResourceClaim],
        deadline: float | None = None,
    ) -> Outcome:
        """Allocate all claims together on one node, or none.

        Args:
            claims: v1 ResourceClaims to allocate, already defaulted.
            deadline: a value of `time.monotonic()` at which the search gives up.

        Raises:
            InputError: an object has not the form of its kind; the path starts with `$.node` or
                `$.claims[i]`.
            CelUnsupportedError: a selector builds a protobuf message.
        """
        if node.__class__ is not Node:
            try:
                node = Node.from_dict(node)
            except InputError as error:
                raise error.with_parent("node") from None
        read_claims: Sequence[Any] = claims
        for claim in claims:
            if claim.__class__ is not ResourceClaim:
                read_claims = read_all(claims, ResourceClaim.from_dict, "claims")
                break
        index = self.index
        if index.unusable:
            return Outcome("error", error=index.unusable)
        search = self._search
        search.steps = 0
        try:
            view = index.views.get_view(node)
            matcher = self._matcher
            matcher.view, matcher.deadline = view, deadline
            # Comprehensions would make cells of what they use: a tenth of a decision.
            checked: list[ClaimRequests] = []
            for item in read_claims:
                checked.append(index.validator.validate_claim(item, matcher, view))  # noqa: PERF401
            if search.run(checked):
                made = allocation_results(checked, search.stack, matcher, self.share_ids)
                return Outcome("allocated", made, "", search.steps)
            if view.has_invalid and not index.rules.fails_pod_for_invalid_pool:
                raise NodeAllocationError("invalid resource pools were encountered")
            return Outcome("none", steps=search.steps)
        except (AllocationError, NodeAllocationError, SearchTimeoutError) as error:
            return Outcome(_KINDS[type(error)], (), str(error), search.steps)
