"""Which pools each node can use, kept up to date by events about slices.

A view is built when a node is first asked for. After an event only the pools that it concerns are
looked at again, and only in the views that have them, so that a decision after an event costs what
the node has and not what the cluster holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reference_allocator.api import Node, PoolId, ResourceSlice
from reference_allocator.cluster.gathering import PoolBuilder, keep_newest, targets
from reference_allocator.cluster.node import NodeView
from reference_allocator.cluster.pools import Pool
from reference_allocator.cluster.state import AllocatedState
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules

_MAX_KEPT: Final = 2_000_000
"""How many candidates all views together may have; beyond it the oldest are built anew."""
_MAX_LOG: Final = 10_000


class Views:
    """The slices of a cluster, and the views of its nodes. Not thread-safe."""

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        features: Features,
        state: AllocatedState,
        rules: MinorRules,
    ) -> None:
        self._features = features
        self._state = state
        self._builder = PoolBuilder(features, state, rules)
        self._slices: dict[int, ResourceSlice] = {}
        self._named: dict[str, list[int]] = {}
        self._shared: dict[int, ResourceSlice] = {}
        self._of_node: dict[str, dict[int, ResourceSlice]] = {}
        self._of_pool: dict[PoolId, dict[int, ResourceSlice]] = {}
        self._built: dict[PoolId, dict[tuple[ResourceSlice, ...], Pool | None]] = {}
        self._views: dict[str, NodeView] = {}
        self._kept = 0
        self._next = 0
        self._version = 0
        self._touched: dict[str, set[PoolId]] = {}
        self._log: list[PoolId] = []
        for item in slices:
            self._insert(item)
        for of_pool in self._of_pool.values():
            self._prepare(next(iter(of_pool.values())))

    def slices(self) -> Iterator[ResourceSlice]:
        """All slices; those that were updated keep their place."""
        return iter(self._slices.values())

    def put(self, item: ResourceSlice) -> None:
        """Adds a slice, or replaces the one of the same name."""
        keys = self._named.get(item.name, [])
        before = [self._slices[key] for key in keys]
        if (
            len(before) == 1
            and before[0].pool_id == item.pool_id
            and (before[0].node_name or "") == (item.node_name or "")
        ):
            self._place(keys[0], item)
            self._builder.replace(before[0], item)
        else:
            self.remove(item.name)
            self._insert(item)
        self._touch(item.pool_id, item)
        self._prepare(item)

    def remove(self, name: str) -> bool:
        """Removes a slice; False where there is none of that name."""
        keys = self._named.pop(name, [])
        for key in keys:
            item = self._slices.pop(key)
            self._shared.pop(key, None)
            of_pool = self._of_pool[item.pool_id]
            del of_pool[key]
            if item.node_name:
                del self._of_node[item.node_name][key]
                if not self._of_node[item.node_name]:
                    del self._of_node[item.node_name]
            self._builder.forget(item)
            self._touch(item.pool_id, item)
            if not of_pool:
                del self._of_pool[item.pool_id]
        return bool(keys)

    def view(self, node: Node) -> NodeView:
        """The view of a node as it is now.

        Raises:
            AllocationError: a node selector of a slice or device does not parse.
        """
        view = self._views.get(node.name)
        if view is not None:
            if view.version == self._version and view.node is node:
                return view
            if view.node == node and self._refresh(view):
                view.node = node
                return view
            self._drop(node.name)
        view = self._build(node)
        self._views[node.name] = view
        self._kept += len(view.candidates) + len(view.pools) + 1
        while self._kept > _MAX_KEPT and len(self._views) > 1:
            self._drop(next(iter(self._views)))
        return view

    def _drop(self, name: str) -> None:
        view = self._views.pop(name)
        self._touched.pop(name, None)
        self._kept -= len(view.candidates) + len(view.pools) + 1

    def _build(self, node: Node) -> NodeView:
        relevant: dict[PoolId, list[ResourceSlice]] = {}
        for item in (*self._of_node.get(node.name, {}).values(), *self._shared.values()):
            if self._builder.usable(item) and targets(item, node):
                keep_newest(relevant.setdefault(item.pool_id, []), item)
        by_id: dict[PoolId, Pool] = {}
        for pool_id, items in relevant.items():
            pool = self._pool(pool_id, tuple(items))
            if pool is not None:
                by_id[pool_id] = pool
        view = NodeView(node, self._features, by_id)
        view.version = self._version
        view.log_end = len(self._log)
        return view

    def _refresh(self, view: NodeView) -> bool:
        """Brings a view up to date; False where it has to be built anew."""
        if view.version == self._version:
            return True
        name = view.node.name
        touched = self._touched.pop(name, set()).union(self._log[view.log_end :])
        if touched:
            self._kept -= len(view.candidates) + len(view.pools)
            changed = False
            try:
                for pool_id in touched:
                    changed |= self._refresh_pool(view, pool_id)
            except AllocationError:
                self._kept += len(view.candidates) + len(view.pools)
                return False  # Which error comes first is found out by looking at everything.
            if changed:
                view.arrange()
            self._kept += len(view.candidates) + len(view.pools)
        view.version = self._version
        view.log_end = len(self._log)
        return True

    def _refresh_pool(self, view: NodeView, pool_id: PoolId) -> bool:
        items = self._of_pool.get(pool_id, {}).values()
        own = [item for item in items if item.node_name == view.node.name]
        shared = [item for item in items if not item.node_name]
        relevant = self._newest((*own, *shared), view.node)
        pool = self._pool(pool_id, relevant) if relevant else None
        before = view.by_id.get(pool_id)
        if pool is None:
            view.by_id.pop(pool_id, None)
        else:
            view.by_id[pool_id] = pool
        return pool is not before

    def _pool(self, pool_id: PoolId, relevant: tuple[ResourceSlice, ...]) -> Pool | None:
        built = self._built.setdefault(pool_id, {})
        if relevant not in built:
            built[relevant] = self._builder.build(relevant, self._of_pool[pool_id].values())
        return built[relevant]

    def _insert(self, item: ResourceSlice) -> None:
        key = self._next
        self._next += 1
        self._named.setdefault(item.name, []).append(key)
        self._place(key, item)

    def _place(self, key: int, item: ResourceSlice) -> None:
        self._slices[key] = item
        self._of_pool.setdefault(item.pool_id, {})[key] = item
        if item.node_name:
            self._of_node.setdefault(item.node_name, {})[key] = item
        else:
            self._shared[key] = item

    def _prepare(self, item: ResourceSlice) -> None:
        """Builds a node's pool when its last slice comes, so that no decision waits for it."""
        items = self._of_pool[item.pool_id].values()
        if not item.node_name or len(items) != item.resource_slice_count:
            return
        relevant = self._newest(other for other in items if other.node_name == item.node_name)
        if relevant:
            self._pool(item.pool_id, relevant)

    def _newest(
        self, items: Iterable[ResourceSlice], node: Node | None = None
    ) -> tuple[ResourceSlice, ...]:
        """Those of a pool's slices that count, of one generation; for a node those that target it.

        Raises AllocationError: a node selector does not parse.
        """
        kept: list[ResourceSlice] = []
        for item in items:
            if self._builder.usable(item) and (node is None or targets(item, node)):
                keep_newest(kept, item)
        return tuple(kept)

    def _touch(self, pool_id: PoolId, item: ResourceSlice) -> None:
        """Notes that a pool has changed, for the nodes that can have it."""
        self._version += 1
        self._built.pop(pool_id, None)
        everywhere = self._of_pool[pool_id].values()
        published = {device.name for other in everywhere for device in other.devices}
        self._state.forget(pool_id, published)
        names = {other.node_name or "" for other in (*everywhere, item)}
        if len(names) == 1 and "" not in names:
            (name,) = names
            if name in self._views:
                self._touched.setdefault(name, set()).add(pool_id)
            return
        self._log.append(pool_id)
        if len(self._log) > _MAX_LOG:
            self._log.clear()
            self._views.clear()
            self._touched.clear()
            self._kept = 0
