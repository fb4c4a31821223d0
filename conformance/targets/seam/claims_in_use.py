"""Which ResourceClaims are in use on a node, as the API server knows it."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.targets.seam.values import Obj


def in_use(claims: Iterable[Obj], driver: str, node: str) -> int:
    """How many claims have devices of a driver on a node and are reserved for somebody.

    An allocation of devices that are local to a node names it (``status.allocation.nodeSelector``,
    k8s.io/dynamic-resource-allocation/structured).
    """
    return sum(_is_in_use(claim.get("status") or {}, driver, node) for claim in claims)


def _is_in_use(status: Obj, driver: str, node: str) -> bool:
    allocation = status.get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or []
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    named = [field.get("values") for term in terms for field in term.get("matchFields") or []]
    return (
        bool(status.get("reservedFor"))
        and any(result["driver"] == driver for result in results)
        and [node] in named
    )
