"""What the scheduler knows of the cluster's devices, classes and claims.

The allocator's index is kept over all attempts and only told what changed, as the real scheduler
keeps its caches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from kube.values import Obj
from kubesim.cluster import Cluster
from kubesim.store import name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from reference_allocator.allocator import Allocator
    from reference_allocator.index import Index


class Listers:
    """What allocations depend on, kind by kind (``SharedDRAManager`` of the real scheduler).

    Attributes:
        pending: uid -> claim with an allocation that is not written yet; also of claims that are
            not made yet.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.pending: dict[str, Obj] = {}
        self._cluster = cluster

    def resource_slices(self) -> list[Obj]:
        """Return all ResourceSlices, with the taints of DeviceTaintRules."""
        return self._cluster.list_slices()

    def device_classes(self) -> list[Obj]:
        return self._cluster.store.all("DeviceClass")

    def resource_claims(self) -> list[Obj]:
        """Return all ResourceClaims; those that are allocated say which devices are in use."""
        claims = self._cluster.store.all("ResourceClaim")
        if not self.pending:
            return claims
        return [*({uid_of(claim): claim for claim in claims} | self.pending).values()]


class AllocatorCache:
    """An allocator over what the listers have now."""

    def __init__(self, cluster: Cluster, listers: Listers) -> None:
        self._cluster = cluster
        self._listers = listers
        self._slices: dict[Hashable, Obj] = {}
        self._classes: dict[Hashable, Obj] = {}
        self._claims: dict[Hashable, Obj] = {}

    @cached_property
    def _index(self) -> Index:
        from reference_allocator.index import Index  # a tenth of the time until a server answers

        return Index(self._cluster.features, kubernetes=self._cluster.minor)

    def update_allocator(self) -> Allocator:
        """Bring the allocator up to date, and return it.

        Raises InputError: an object in the store has not the form that the allocator expects.
        """
        from reference_allocator.allocator import Allocator

        index, listers = self._index, self._listers
        _follow(
            self._slices,
            listers.resource_slices(),
            name_of,
            index.put_slice,
            lambda obj: index.remove_slice(name_of(obj)),
        )
        _follow(
            self._classes,
            listers.device_classes(),
            name_of,
            index.put_class,
            lambda obj: index.remove_class(name_of(obj)),
        )
        _follow(
            self._claims,
            listers.resource_claims(),
            _key,
            index.put_claim,
            lambda obj: index.remove_claim(*_key(obj)),
        )
        return Allocator(index)


def _key(obj: Obj) -> tuple[str, str]:
    return namespace_of(obj), name_of(obj)


def _follow(
    known_by_key: dict[Hashable, Obj],
    present: Iterable[Obj],
    key: Callable[[Obj], Hashable],
    put: Callable[[Obj], object],
    remove: Callable[[Obj], object],
) -> None:
    """Tell what changed; objects of the store are values, so the same object has not changed."""
    current_by_key = {key(obj): obj for obj in present}
    for removed_key in known_by_key.keys() - current_by_key.keys():
        remove(known_by_key.pop(removed_key))
    for name, obj in current_by_key.items():
        if known_by_key.get(name) is not obj:
            put(obj)
            known_by_key[name] = obj
