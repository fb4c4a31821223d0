"""Whether an error on some node would end the scheduler's attempt for a pod.

Where the allocator meets an error, such as a selector that a device cannot be asked, the scheduler
tries no other node. So whether a pod fits one node depends on all. Each node is asked once for all
pods that ask for the same, and again when an event has touched what it can use.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from conformance.compare.case import Case, Key, Placement
from conformance.compare.evidence import Object
from conformance.compare.related import Relations, node_of, pool_of, pools_in_use
from kube.slices import is_allocated
from reference_allocator.allocator import Allocator
from reference_allocator.api import Node, ResourceClaim
from reference_allocator.snapshot import Snapshot

_SECONDS = 30.0
_MAX_REMEMBERED = 64


class NodeErrors:
    """What is known of the errors on the nodes of a cluster that changes. Not thread-safe.

    Args:
        snapshot: the cluster as it is now.
        objects: its objects by kind and name, kept up to date by whoever tells of changes.
        relations: of the same objects.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        objects: Mapping[str, Mapping[Key, Object]],
        relations: Relations,
    ) -> None:
        self._objects = objects
        self._relations = relations
        self._allocator = Allocator.from_snapshot(snapshot)
        self._nodes = {key[1]: Node.from_dict(item) for key, item in objects["Node"].items()}
        self._unasked: dict[str, set[str]] = {}

    def record_change(
        self, kind: str, key: Key, before: Object | None, after: Object | None
    ) -> None:
        """Record what an object was and is; None: it is not there."""
        objects = [item for item in (before, after) if item is not None]
        match kind:
            case "Node":
                self._change_node(key[1], after)
            case "ResourceSlice":
                self._change_slice(key[1], after)
                touched = set(map(node_of, objects))
                self._touch(touched.union(*(self._nodes_of(pool_of(item)) for item in objects)))
            case "DeviceClass":
                self._change_class(key[1], after)
                self._unasked.clear()
            case "ResourceClaim":
                self._change_claim(key, after)
                pools = set[Key]().union(*map(pools_in_use, objects))
                self._touch(set[str]().union(*map(self._nodes_of, pools)))

    def may_end_attempt(self, case: Case) -> bool:
        """Return whether a node has an error for a case, or has had no time for an answer.

        Raises InputError: an object has not the form of its kind.
        """
        unasked = self._find_unasked(case)
        until = time.monotonic() + _SECONDS
        placement = Placement(case)
        plain = [ResourceClaim.from_dict(item) for item in case.claims]
        read: dict[str, ResourceClaim] = {}
        for name in list(unasked):
            claims = list(plain)
            for made in placement.list_claims(self._objects["Node"]["", name])[len(plain) :]:
                text = json.dumps(made)
                if text not in read:
                    read[text] = ResourceClaim.from_dict(made)
                claims.append(read[text])
            if claims:
                outcome = self._allocator.allocate(self._nodes[name], claims, deadline=until)
                if outcome.kind in ("error", "timeout"):
                    return True
            unasked.discard(name)
        return False

    def _find_unasked(self, case: Case) -> set[str]:
        """Return the nodes that have not been asked, as they are now, what a case asks for."""
        asked: list[object] = [claim["spec"] for claim in case.claims]
        if case.requested:
            spec = case.pod_spec
            asked += [spec.get("initContainers"), spec.get("containers")]
        text = json.dumps(asked)
        unasked = self._unasked.get(text)
        if unasked is None:
            if len(self._unasked) >= _MAX_REMEMBERED:
                del self._unasked[next(iter(self._unasked))]
            unasked = self._unasked[text] = set(self._nodes)
        return unasked

    def _nodes_of(self, pool: Key) -> set[str]:
        return self._relations.nodes_of_pool(pool)

    def _touch(self, names: set[str]) -> None:
        """Have nodes asked again; an empty name means all."""
        if "" in names:
            self._unasked.clear()
        for unasked in self._unasked.values():
            unasked |= names & self._nodes.keys()

    def _change_node(self, name: str, node: Object | None) -> None:
        if node is None:
            self._nodes.pop(name, None)
            for unasked in self._unasked.values():
                unasked.discard(name)
        else:
            self._nodes[name] = Node.from_dict(node)
            self._touch({name})

    def _change_slice(self, name: str, item: Object | None) -> None:
        index = self._allocator.index
        if item is None:
            index.remove_slice(name)
        else:
            index.put_slice(item)

    def _change_class(self, name: str, item: Object | None) -> None:
        index = self._allocator.index
        if item is None:
            index.remove_class(name)
        else:
            index.put_class(item)

    def _change_claim(self, key: Key, claim: Object | None) -> None:
        index = self._allocator.index
        if claim is None or not is_allocated(claim):
            index.remove_claim(*key)
        else:
            index.put_claim(claim)
