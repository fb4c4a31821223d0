"""What is read from ResourceSlices and from allocations in more than one place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kube.values import Obj


def pools_complete(specs: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether these ResourceSlice specs are whole pools, and at least one.

    A pool is whole when as many slices of its newest generation are there as they say
    (resource.k8s.io/v1 ResourcePool: generation, resourceSliceCount).
    """
    pools: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for spec in specs:
        pools[spec["pool"]["name"]].append(spec["pool"])
    for slices in pools.values():
        newest = max(pool["generation"] for pool in slices)
        current = [pool for pool in slices if pool["generation"] == newest]
        if len(current) != current[0]["resourceSliceCount"]:
            return False
    return bool(pools)


def results_of(claim: Mapping[str, Any]) -> list[Obj]:
    """Return the devices that are allocated to a claim (``status.allocation.devices.results``)."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def is_allocated(claim: Mapping[str, Any]) -> bool:
    """Return whether a claim has been given devices, or none as it asked for none."""
    return bool((claim.get("status") or {}).get("allocation"))
