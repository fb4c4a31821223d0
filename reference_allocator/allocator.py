"""The decision: which devices do these claims get on this node?

One `Allocator` stands for one state of the cluster and answers for any number of nodes, as
upstream's structured.Allocator does. It reads v1 objects as they are: no defaulting happens here
(`reference_allocator.defaults` does that, as the API server would).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reference_allocator.api import DeviceClass, Node, ResourceClaim, ResourceSlice
from reference_allocator.derived import AttributeSource
from reference_allocator.errors import AllocationError, NodeAllocationError, SearchTimeoutError
from reference_allocator.features import Features
from reference_allocator.fields import InputError, read_all
from reference_allocator.nodeselector import node_matches
from reference_allocator.pools import Pool, PoolDevice, SliceIndex
from reference_allocator.requests import ClaimRequests, Request
from reference_allocator.result import ShareIds, allocation_result, derived_share_id
from reference_allocator.search import Search
from reference_allocator.selectors import Selectors
from reference_allocator.state import AllocatedState
from reference_allocator.usage import Usage
from reference_allocator.validate import Validator

Object = Mapping[str, Any]
"""A Kubernetes object as JSON."""

Kind = Literal["allocated", "none", "nodeError", "error", "timeout"]


@dataclass(frozen=True)
class Outcome:
    """What came of one `Allocator.allocate`.

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
    """Allocates claims from one state of the cluster. Not thread-safe.

    Wherever a JSON object is taken, the value that was read from it (`reference_allocator.api`) may
    be given instead, so that what several allocators share is read once.

    Args:
        features: what may be used.
        slices: v1 ResourceSlices, with DeviceTaintRules already applied.
        device_classes: v1 DeviceClasses.
        allocated: v1 ResourceClaims; those with `status.allocation` say what is in use.
        share_ids: where share ids come from; by default they depend on claim and device only.

    Raises:
        InputError: an object has not the form of its kind; the path starts with `$.slices[i]`,
            `$.deviceClasses[i]` or `$.allocated[i]`.
    """

    def __init__(
        self,
        features: Features,
        slices: Sequence[Object | ResourceSlice],
        device_classes: Sequence[Object | DeviceClass],
        allocated: Sequence[Object | ResourceClaim],
        *,
        share_ids: ShareIds = derived_share_id,
    ) -> None:
        self.features = features
        self._share_ids = share_ids
        read_slices = read_all(slices, ResourceSlice, ResourceSlice.from_dict, "slices")
        classes = read_all(device_classes, DeviceClass, DeviceClass.from_dict, "deviceClasses")
        claims = read_all(allocated, ResourceClaim, ResourceClaim.from_dict, "allocated")
        self._slices = SliceIndex(read_slices, features)
        self._classes = {item.name: item for item in classes}
        self._state = AllocatedState.of(claims, features)
        self._selectors = Selectors()

    def allocate(
        self,
        node: Object | Node,
        claims: Sequence[Object | ResourceClaim],
        *,
        deadline: float | None = None,
    ) -> Outcome:
        """Allocates all claims together on one node, or none.

        Args:
            node: a v1 Node.
            claims: v1 ResourceClaims to allocate, already defaulted.
            deadline: a value of `time.monotonic()` at which the search gives up.

        Raises:
            InputError: an object has not the form of its kind; the path starts with `$.node` or
                `$.claims[i]`.
        """
        try:
            read_node = node if isinstance(node, Node) else Node.from_dict(node)
        except InputError as error:
            raise error.under("node") from None
        read_claims = read_all(claims, ResourceClaim, ResourceClaim.from_dict, "claims")
        return _Attempt(self, read_node, deadline).run(read_claims)

    # What an attempt shares with others on the same state of the cluster.

    def pools(self, node: Node) -> list[Pool]:
        """The pools that the node can use, in the order of the search."""
        return self._slices.pools(node)

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        """Class name -> class."""
        return self._classes

    @property
    def state(self) -> AllocatedState:
        """What is in use."""
        return self._state

    @property
    def selectors(self) -> Selectors:
        """The memo of selectors."""
        return self._selectors

    @property
    def share_ids(self) -> ShareIds:
        """Where share ids come from."""
        return self._share_ids


class _Attempt:
    """One call of `Allocator.allocate`."""

    def __init__(self, allocator: Allocator, node: Node, deadline: float | None) -> None:
        self._allocator = allocator
        self._node = node
        self._deadline = deadline
        self._steps = 0

    def run(self, claims: Sequence[ResourceClaim]) -> Outcome:
        try:
            allocations = self._allocate(claims)
        except AllocationError as error:
            return Outcome("error", error=str(error), steps=self._steps)
        except NodeAllocationError as error:
            return Outcome("nodeError", error=str(error), steps=self._steps)
        except SearchTimeoutError:
            text = "filter operation aborted: context deadline exceeded"
            return Outcome("timeout", error=text, steps=self._steps)
        if allocations is None:
            return Outcome("none", steps=self._steps)
        return Outcome("allocated", tuple(allocations), steps=self._steps)

    def _allocate(self, claims: Sequence[ResourceClaim]) -> list[dict[str, Any]] | None:
        allocator = self._allocator
        pools = allocator.pools(self._node)
        is_selected = SelectionMemo(allocator, self._node).is_selected
        validator = Validator(allocator.features, allocator.classes, pools, is_selected)
        checked = [validator.claim(claim) for claim in claims]
        usage = Usage(
            allocator.features,
            allocator.state,
            self._node,
            checked,
            AttributeSource(allocator.selectors),
        )
        search = Search(checked, pools, usage, is_selected, self._deadline)
        try:
            found = search.run()
        finally:
            self._steps = search.steps
        if not found:
            if any(pool.invalid_reason for pool in pools):
                raise NodeAllocationError("invalid resource pools were encountered")
            return None
        return [self._result(claim, index, search, usage) for index, claim in enumerate(checked)]

    def _result(
        self, claim: ClaimRequests, index: int, search: Search, usage: Usage
    ) -> dict[str, Any]:
        alternatives = [
            search.chosen.get((index, request_index), 0)
            for request_index in range(len(claim.requests))
        ]
        return allocation_result(
            claim,
            alternatives,
            usage.results[index],
            self._node,
            self._allocator.features,
            self._allocator.share_ids,
        )


class SelectionMemo:
    """Whether devices pass the selectors and the node selection of requests, on one node."""

    def __init__(self, allocator: Allocator, node: Node) -> None:
        self._features = allocator.features
        self._selectors = allocator.selectors
        self._node = node

    def is_selected(self, request: Request, entry: PoolDevice) -> bool:
        """The checks of upstream's isSelectable, in its order: class, request, node.

        Raises:
            AllocationError: a selector does not compile or fails on the device.
        """
        known = request.selected.get(entry)
        if known is None:
            known = request.selected[entry] = self._compute(request, entry)
        return known

    def _compute(self, request: Request, entry: PoolDevice) -> bool:
        device = entry.device
        if device.binding_conditions and not self._features.device_binding_and_status:
            return False
        for selectors, owner in (
            (request.class_selectors, f"class {request.device_class.name}"),
            (request.selectors, f"claim {request.claim.ref}"),
        ):
            failure = self._selectors.first_failure(selectors, entry)
            if failure is None:
                continue
            if failure.error is None:
                return False
            on_device = "" if failure.at_compile_time else f" on device {entry.id}"
            raise AllocationError(f"{owner}: selector #{failure.index}{on_device}: {failure.error}")
        if not entry.slice.per_device_node_selection:
            return True
        return node_matches(self._node, device.node_name, device.all_nodes, device.node_selector)
