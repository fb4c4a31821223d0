"""Devices that have to be made ready before a pod may be bound to its node (KEP-5007).

Follows isClaimReadyForBinding and isClaimTimeout of the dynamicresources plugin (pkg/scheduler/
framework/plugins/dynamicresources/dynamicresources.go). Gates: DRADeviceBindingConditions and
DRAResourceClaimDeviceStatus.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from conformance.targets.base import Obj
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.faults import Fault

TIMEOUT: Final = 600.0
"""Seconds, the default of ``bindingTimeout`` in DynamicResourcesArgs."""


class Readiness(Enum):
    """What an allocated claim's devices say."""

    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"


def applies(cluster: Cluster, claim: Obj) -> bool:
    """Whether a claim has a device that must be waited for."""
    if Fault.BINDS_AT_ONCE in cluster.faults or not cluster.features.device_binding_and_status:
        return False
    return any(result.get("bindingConditions") for result in _results(claim))


def readiness(cluster: Cluster, claim: Obj) -> Readiness:
    """What the drivers have reported in ``status.devices`` of an allocated claim."""
    heed_failures = Fault.IGNORES_BINDING_FAILURE not in cluster.faults
    found = Readiness.READY
    for result in _results(claim):
        if not result.get("bindingConditions"):
            continue
        conditions = _reported(claim, result)
        failures = result.get("bindingFailureConditions") or []
        if heed_failures and any(conditions.get(name) for name in failures):
            return Readiness.FAILED
        if not all(conditions.get(name) for name in result["bindingConditions"]):
            found = Readiness.WAITING
    return found


def is_late(cluster: Cluster, claim: Obj) -> bool:
    """Whether the devices of an allocated claim have been waited for long enough."""
    since = claim["status"]["allocation"].get("allocationTimestamp")
    return since is not None and cluster.clock.timestamp(-TIMEOUT) > since


def is_hopeless(cluster: Cluster, claim: Obj) -> bool:
    """Whether an allocated claim will not become ready and should be allocated anew."""
    if not applies(cluster, claim):
        return False
    state = readiness(cluster, claim)
    return state is Readiness.FAILED or (state is Readiness.WAITING and is_late(cluster, claim))


def _results(claim: Obj) -> Iterator[Obj]:
    allocation = claim["status"].get("allocation") or {}
    yield from (allocation.get("devices") or {}).get("results") or []


def _reported(claim: Obj, result: Obj) -> dict[str, bool]:
    """Condition -> whether it is true, for one device."""
    for device in claim["status"].get("devices") or []:
        if all(device.get(field) == result[field] for field in ("driver", "pool", "device")):
            return {
                condition["type"]: condition["status"] == "True"
                for condition in device.get("conditions") or []
            }
    return {}
