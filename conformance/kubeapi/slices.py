"""What is read from ResourceSlices in more than one place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any


def pools_complete(specs: Iterable[Mapping[str, Any]]) -> bool:
    """Whether these ResourceSlice specs are whole pools, and at least one.

    A pool is whole when all slices of its newest generation are there (resource.k8s.io/v1
    ResourcePool: generation, resourceSliceCount).
    """
    pools: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for spec in specs:
        pools[spec["pool"]["name"]].append(spec["pool"])
    for slices in pools.values():
        newest = max(pool["generation"] for pool in slices)
        current = [pool for pool in slices if pool["generation"] == newest]
        if len(current) < current[0]["resourceSliceCount"]:
            return False
    return bool(pools)
