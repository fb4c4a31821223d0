"""What of a cluster belongs together, found by name instead of by looking at everything."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from conformance.compare.case import Key
from conformance.compare.evidence import Object, mapping_field
from kube.slices import results_of

_Terms = Callable[[Object], Iterable[Hashable]]


class TermIndex:
    """The names of objects by terms that are found in them. ``terms_of``: finds an object's."""

    def __init__(self, terms_of: _Terms) -> None:
        self._terms_of = terms_of
        self._keys: dict[Hashable, set[Key]] = {}

    def change(self, key: Key, before: Object | None, after: Object | None) -> None:
        """Record what an object was and is; None: it is not there."""
        for term in () if before is None else self._terms_of(before):
            keys = self._keys.get(term, set())
            keys.discard(key)
            if not keys:
                self._keys.pop(term, None)
        for term in () if after is None else self._terms_of(after):
            self._keys.setdefault(term, set()).add(key)

    def find(self, term: Hashable) -> frozenset[Key]:
        """Return the names of the objects that have a term."""
        return frozenset(self._keys.get(term, ()))


class Relations:
    """Who is of which pool, node and owner in a cluster. Not thread-safe.

    Attributes:
        slices_of_pool: by driver and pool name.
        slices_of_node: by ``spec.nodeName``, empty where a slice is for no node in particular.
        claims_of_pool: claims that have devices, by driver and pool name.
        claims_of_owner: by the uid of an owner.
        pods_of_node: by the node that a pod is on, empty where it has none.
    """

    def __init__(self, objects: Mapping[str, Mapping[Key, Object]]) -> None:
        self._objects = objects
        self.slices_of_pool = TermIndex(lambda item: (pool_of(item),))
        self.slices_of_node = TermIndex(lambda item: (node_of(item),))
        self.claims_of_pool = TermIndex(pools_in_use)
        self.claims_of_owner = TermIndex(_list_owners)
        self.pods_of_node = TermIndex(lambda item: (node_of(item),))
        for kind, kept in objects.items():
            for key, obj in kept.items():
                self.change(kind, key, None, obj)

    def change(self, kind: str, key: Key, before: Object | None, after: Object | None) -> None:
        """Record what an object was and is; None: it is not there."""
        for index in {
            "ResourceSlice": (self.slices_of_pool, self.slices_of_node),
            "ResourceClaim": (self.claims_of_pool, self.claims_of_owner),
            "Pod": (self.pods_of_node,),
        }.get(kind, ()):
            index.change(key, before, after)

    def pools_of_node(self, node: str) -> set[Key]:
        """Return the pools of which a slice is of a node; empty: is for no node in particular."""
        slices = self._objects["ResourceSlice"]
        return {pool_of(slices[key]) for key in self.slices_of_node.find(node)}

    def nodes_of_pool(self, pool: Key) -> set[str]:
        """Return the nodes that have a slice of a pool; an empty name: all may."""
        slices = self._objects["ResourceSlice"]
        return {node_of(slices[key]) for key in self.slices_of_pool.find(pool)}


def pool_of(item: Object) -> Key:
    """Return driver and name of the pool of a ResourceSlice."""
    spec = item["spec"]
    return spec["driver"], spec["pool"]["name"]


def node_of(obj: Object) -> str:
    """Return ``spec.nodeName`` of a ResourceSlice or a Pod; empty where it has none."""
    return str(mapping_field(obj, "spec").get("nodeName") or "")


def pools_in_use(claim: Object) -> set[Key]:
    """Return driver and name of the pools of which a claim has devices."""
    return {(result["driver"], result["pool"]) for result in results_of(claim)}


def _list_owners(claim: Object) -> Iterator[str]:
    for owner in mapping_field(claim, "metadata").get("ownerReferences") or ():
        yield str(owner.get("uid"))
