"""The devices that one node can use, by pools, in the order of the search."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from reference_allocator.api import Node, PoolId
from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.features import Features
from reference_allocator.rules.nodeselector import node_matches

_OPTIONAL_NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
_MAX_RATED: Final = 64
_PLACE_IN_SEARCH: Final = attrgetter("has_binding_conditions", "id")


class NodeView:
    """The pools and devices that one node can use.

    Attributes:
        node: the node.
        by_id: its pools by their ids; whoever changes this calls `arrange`.
        pools: its pools in the order of the search: by driver and pool name, those with binding
            conditions last.
        candidates: the devices of usable pools in the order of the search.
        has_invalid: whether one of the pools is invalid.
        ratings: `Request.kind` -> what `Matcher.rate_device` has answered for each candidate.
        version: the version of `Views` that the view shows.
        log_end: how much of the log of `Views` the view has followed.
    """

    # There is one for each node: large clusters have many, and a first decision makes one.
    __slots__ = (
        "_features",
        "_included",
        "_own_selector",
        "_pool_of",
        "by_id",
        "candidates",
        "has_invalid",
        "log_end",
        "node",
        "pools",
        "ratings",
        "version",
    )

    def __init__(
        self,
        node: Node,
        features: Features,
        by_id: dict[PoolId, Pool],
        version: int,
        log_end: int,
    ) -> None:
        self.node = node
        self.by_id = by_id
        self.version = version
        self.log_end = log_end
        self._features = features
        self._own_selector: dict[str, Any] | None = None
        self.arrange()

    def arrange(self) -> None:
        """Put everything in order after `by_id` has changed."""
        self.pools = pools = list(self.by_id.values())
        if len(pools) == 1 and pools[0].usable:
            self.has_invalid = False
            self.candidates = pools[0].devices
        else:
            pools.sort(key=_PLACE_IN_SEARCH)
            usable = [pool for pool in pools if pool.usable]
            self.has_invalid = any(pool.invalid_reason for pool in pools)
            self.candidates = tuple([entry for pool in usable for entry in pool.devices])
        self.ratings: dict[int, list[int | None]] = {}
        self._pool_of: dict[PoolDevice, Pool] | None = None
        self._included: dict[PoolDevice, bool] | None = None

    def start_ratings(self, kind: int) -> list[int | None]:
        """Return the list for what is found out about the candidates for requests of a kind."""
        if len(self.ratings) >= _MAX_RATED:
            self.ratings.clear()
        ratings = self.ratings[kind] = [None] * len(self.candidates)
        return ratings

    def own_selector(self) -> dict[str, Any]:
        """Return the v1 NodeSelector of this node alone, the same object for all who ask."""
        if self._own_selector is None:
            name = {"key": "metadata.name", "operator": "In", "values": [self.node.name]}
            self._own_selector = {"nodeSelectorTerms": [{"matchFields": [name]}]}
        return self._own_selector

    def pool_of(self, entry: PoolDevice) -> Pool:
        """Return the pool of a candidate."""
        if len(self.pools) == 1:
            return self.pools[0]
        if self._pool_of is None:
            self._pool_of = {
                entry: pool for pool in self.pools if pool.usable for entry in pool.devices
            }
        return self._pool_of[entry]

    def includes_device(self, entry: PoolDevice) -> bool:
        """Return whether a device of a slice for several nodes is for this one.

        Raises:
            AllocationError: its node selector does not parse.
        """
        if not entry.slice.per_device_node_selection:
            return True
        if self._included is None:
            self._included = {}
        included = self._included.get(entry)
        if included is None:
            device = entry.device
            included = self._included[entry] = node_matches(
                self.node, device.node_name, device.all_nodes, device.node_selector
            )
        return included

    def can_operate(self, entry: PoolDevice) -> bool:
        """Return whether the node can leave out the operations that the device's slice skips."""
        skips = (
            self._features.optional_node_operations
            and _OPTIONAL_NODE_OPERATIONS in self.node.declared_features
        )
        return skips or not entry.slice.skip_node_operations
