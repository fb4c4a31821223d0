"""The pools that each node can use, kept up to date by events about slices.

A view is built when a node is first asked for. After an event only the pools that it concerns are
looked at again, and only in the views that have them, so that a decision after an event costs what
the node has and not what the cluster holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reference_allocator.api import Node, PoolId, ResourceSlice
from reference_allocator.cluster.gathering import PoolBuilder, keep_newest, targets_node
from reference_allocator.cluster.node import NodeView
from reference_allocator.cluster.pools import Pool
from reference_allocator.cluster.state import AllocatedState
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules

_MAX_CANDIDATES: Final = 2_000_000
"""The most candidates that all views have together; beyond it the oldest views are dropped."""
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
        self._of_node: dict[str, dict[int, tuple[PoolId, ResourceSlice, bool]]] = {}
        self._of_pool: dict[PoolId, dict[int, ResourceSlice]] = {}
        self._built: dict[PoolId, dict[tuple[ResourceSlice, ...], Pool | None]] = {}
        self._views: dict[str, NodeView] = {}
        self._candidate_count = 0
        self._next = 0
        self._version = 0
        self._touched: dict[str, set[PoolId]] = {}
        self._log: list[PoolId] = []
        for item in slices:
            self._insert_slice(item)
        for of_pool in self._of_pool.values():
            self._prepare_pool(next(iter(of_pool.values())))

    def list_slices(self) -> Iterator[ResourceSlice]:
        """Return all slices; those that were updated keep their place."""
        return iter(self._slices.values())

    def put_slice(self, item: ResourceSlice) -> None:
        """Add a slice, or replace the one of the same name."""
        keys = self._named.get(item.name, [])
        replaced = [self._slices[key] for key in keys]
        if (
            len(replaced) == 1
            and replaced[0].pool_id == item.pool_id
            and (replaced[0].node_name or "") == (item.node_name or "")
        ):
            self._store_slice(keys[0], item)
            self._builder.replace_slice(replaced[0], item)
        else:
            self.remove_slice(item.name)
            self._insert_slice(item)
        self._record_change(item.pool_id, item)
        self._prepare_pool(item)

    def remove_slice(self, name: str) -> bool:
        """Remove a slice; return False where there is none of that name."""
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
            self._record_change(item.pool_id, item)
            if not of_pool:
                del self._of_pool[item.pool_id]
        return bool(keys)

    def get_view(self, node: Node) -> NodeView:
        """Return the view of a node as it is now.

        Raises:
            AllocationError: a node selector of a slice or device does not parse.
        """
        view = self._views.get(node.name)
        if view is not None:
            if view.version == self._version and view.node is node:
                return view
            if view.node == node and self._refresh_view(view):
                view.node = node
                return view
            self._drop_view(node.name)
        view = self._build_view(node)
        self._views[node.name] = view
        self._candidate_count += len(view.candidates) + len(view.pools) + 1
        while self._candidate_count > _MAX_CANDIDATES and len(self._views) > 1:
            self._drop_view(next(iter(self._views)))
        return view

    def _drop_view(self, name: str) -> None:
        view = self._views.pop(name)
        self._touched.pop(name, None)
        self._candidate_count -= len(view.candidates) + len(view.pools) + 1

    def _build_view(self, node: Node) -> NodeView:
        relevant: dict[PoolId, list[ResourceSlice]] = {}
        for pool_id, item, usable in self._of_node.get(node.name, {}).values():
            if pool_id in relevant and usable:
                keep_newest(relevant[pool_id], item)
            elif usable:
                relevant[pool_id] = [item]
        for item in self._shared.values():
            if self._builder.is_usable(item) and targets_node(item, node):
                keep_newest(relevant.setdefault(item.pool_id, []), item)
        by_id: dict[PoolId, Pool] = {}
        for pool_id, items in relevant.items():
            pool = self._get_pool(pool_id, tuple(items))
            if pool is not None:
                by_id[pool_id] = pool
        return NodeView(node, self._features, by_id, self._version, len(self._log))

    def _refresh_view(self, view: NodeView) -> bool:
        """Bring a view up to date; return False where it has to be built anew."""
        if view.version == self._version:
            return True
        name = view.node.name
        touched = self._touched.pop(name, set()).union(self._log[view.log_end :])
        if touched:
            self._candidate_count -= len(view.candidates) + len(view.pools)
            changed = False
            try:
                for pool_id in touched:
                    changed |= self._refresh_pool(view, pool_id)
            except AllocationError:
                self._candidate_count += len(view.candidates) + len(view.pools)
                return False  # Only a look at everything tells which error comes first.
            if changed:
                view.arrange()
            self._candidate_count += len(view.candidates) + len(view.pools)
        view.version = self._version
        view.log_end = len(self._log)
        return True

    def _refresh_pool(self, view: NodeView, pool_id: PoolId) -> bool:
        items = self._of_pool.get(pool_id, {}).values()
        node_slices = [item for item in items if item.node_name == view.node.name]
        shared = [item for item in items if not item.node_name]
        relevant = self._newest((*node_slices, *shared), view.node)
        pool = self._get_pool(pool_id, relevant) if relevant else None
        previous_pool = view.by_id.get(pool_id)
        if pool is None:
            view.by_id.pop(pool_id, None)
        else:
            view.by_id[pool_id] = pool
        return pool is not previous_pool

    def _get_pool(self, pool_id: PoolId, relevant: tuple[ResourceSlice, ...]) -> Pool | None:
        built = self._built.setdefault(pool_id, {})
        pool = built.get(relevant)
        if pool is None and relevant not in built:
            everywhere = self._of_pool[pool_id].values()
            pool = built[relevant] = self._builder.build_pool(relevant, everywhere)
        return pool

    def _insert_slice(self, item: ResourceSlice) -> None:
        key = self._next
        self._next += 1
        self._named.setdefault(item.name, []).append(key)
        self._store_slice(key, item)

    def _store_slice(self, key: int, item: ResourceSlice) -> None:
        self._slices[key] = item
        pool_id = item.pool_id
        self._of_pool.setdefault(pool_id, {})[key] = item
        if item.node_name:
            of_node = self._of_node.setdefault(item.node_name, {})
            of_node[key] = pool_id, item, self._builder.is_usable(item)
        else:
            self._shared[key] = item

    def _prepare_pool(self, item: ResourceSlice) -> None:
        """Build a node's pool when its last slice comes, so that no decision waits for it."""
        items = self._of_pool[item.pool_id].values()
        if not item.node_name or len(items) != item.resource_slice_count:
            return
        relevant = self._newest(other for other in items if other.node_name == item.node_name)
        if relevant:
            self._get_pool(item.pool_id, relevant)

    def _newest(
        self, items: Iterable[ResourceSlice], node: Node | None = None
    ) -> tuple[ResourceSlice, ...]:
        """Return the slices of a pool's newest generation; for a node those that target it.

        Raises AllocationError: a node selector does not parse.
        """
        newest: list[ResourceSlice] = []
        for item in items:
            if self._builder.is_usable(item) and (node is None or targets_node(item, node)):
                keep_newest(newest, item)
        return tuple(newest)

    def _record_change(self, pool_id: PoolId, item: ResourceSlice) -> None:
        """Record that a pool has changed, for the nodes that can have it."""
        self._version += 1
        self._built.pop(pool_id, None)
        everywhere = self._of_pool[pool_id].values()
        published = {device.name for other in everywhere for device in other.devices}
        self._state.forget(pool_id, published)
        names = {other.node_name or "" for other in (*everywhere, item)}
        # A pool of one node concerns that node's view alone; every other pool goes into the log,
        # which all views follow.
        if len(names) == 1 and "" not in names:
            (name,) = names
            if name in self._views:
                self._touched.setdefault(name, set()).add(pool_id)
            return
        self._log.append(pool_id)
        # A view's `log_end` means nothing in a log that was cleared, so all views are built anew.
        if len(self._log) > _MAX_LOG:
            self._log.clear()
            self._views.clear()
            self._touched.clear()
            self._candidate_count = 0
