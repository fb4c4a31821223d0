"""How faults reach the allocator: they change what it is told, or what becomes of its answer.

The allocator itself stays as it is, so a fault cannot hide in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.store import clone
from conformance.targets.reference.faults import Fault

_LOST_OF_REQUESTS: Final = {
    Fault.ADMIN_ACCESS_NEEDS_FREE_DEVICE: "adminAccess",
    Fault.IGNORE_SELECTORS: "selectors",
    Fault.IGNORES_TOLERATIONS: "tolerations",
}
_LOST_OF_DEVICES: Final = {
    Fault.IGNORES_COUNTERS: "consumesCounters",
    Fault.IGNORES_DEVICE_TAINTS: "taints",
    Fault.SELECTORS_SEE_NO_ATTRIBUTES: "attributes",
}


def claims(faults: frozenset[Fault], originals: Sequence[Obj]) -> list[Obj]:
    """The claims to allocate, as a scheduler with these faults reads them."""
    if not faults:
        return list(originals)
    changed = [clone(claim) for claim in originals]
    for claim in changed:
        devices = claim["spec"].get("devices") or {}
        if Fault.IGNORE_MATCH_ATTRIBUTE in faults:
            devices.pop("constraints", None)
        if Fault.LAST_ALTERNATIVE_FIRST in faults:
            for request in devices.get("requests") or []:
                (request.get("firstAvailable") or []).reverse()
        for wanted in _wanted(devices):
            for fault, field in _LOST_OF_REQUESTS.items():
                if fault in faults:
                    wanted.pop(field, None)
            if Fault.IGNORES_COUNT in faults and wanted.get("allocationMode") != "All":
                wanted["count"] = 1
            if Fault.ALL_TAKES_ONE in faults and wanted.get("allocationMode") == "All":
                wanted.update(allocationMode="ExactCount", count=1)
    return changed


def classes(faults: frozenset[Fault], originals: Sequence[Obj]) -> list[Obj]:
    """The classes, as a scheduler with these faults reads them."""
    if Fault.IGNORE_SELECTORS not in faults:
        return list(originals)
    changed = [clone(device_class) for device_class in originals]
    for device_class in changed:
        (device_class.get("spec") or {}).pop("selectors", None)
    return changed


def without_all(faults: frozenset[Fault], originals: Sequence[Obj]) -> list[Obj] | None:
    """What to ask for when all that was asked for is not to be had, None for nothing."""
    if Fault.ALL_MAY_BE_NONE not in faults:
        return None
    changed = [clone(claim) for claim in originals]
    for claim in changed:
        devices = claim["spec"].get("devices") or {}
        devices["requests"] = [
            request
            for request in devices.get("requests") or []
            if (request.get("exactly") or {}).get("allocationMode") != "All"
        ]
    return changed


def slices(faults: frozenset[Fault], originals: Sequence[Obj]) -> list[Obj]:
    """The slices, as a scheduler with these faults reads them."""
    lost = [field for fault, field in _LOST_OF_DEVICES.items() if fault in faults]
    policies = Fault.IGNORES_REQUEST_POLICY not in faults
    if not lost and policies and Fault.ANY_NODE not in faults:
        return list(originals)
    changed = [clone(resource_slice) for resource_slice in originals]
    for resource_slice in changed:
        spec = resource_slice["spec"]
        if Fault.ANY_NODE in faults and spec.pop("nodeName", None):
            spec["allNodes"] = True
        for device in spec.get("devices") or []:
            for field in lost:
                device.pop(field, None)
            for capacity in () if policies else (device.get("capacity") or {}).values():
                capacity.pop("requestPolicy", None)
    return changed


def allocated(faults: frozenset[Fault], originals: Sequence[Obj]) -> list[Obj]:
    """The claims whose devices are in use, as a scheduler with these faults sees them."""
    if Fault.DOUBLE_ALLOCATION in faults:
        return []
    if Fault.IGNORES_CONSUMED_CAPACITY not in faults:
        return list(originals)
    changed = [clone(claim) for claim in originals]
    for claim in changed:
        devices = (claim["status"].get("allocation") or {}).get("devices") or {}
        for result in devices.get("results") or []:
            result.pop("consumedCapacity", None)
    return changed


def allocation(faults: frozenset[Fault], original: Obj) -> Obj:
    """What is written to the claim."""
    new = clone(original)
    devices = new.get("devices") or {}
    if Fault.LOSES_CONFIG in faults:
        devices.pop("config", None)
    if Fault.CLAIM_CONFIG_FIRST in faults and devices.get("config"):
        devices["config"].sort(key=lambda config: config["source"] != "FromClaim")
    if Fault.ONE_DEVICE_FOR_ALL_REQUESTS in faults and devices.get("results"):
        first = {name: devices["results"][0][name] for name in ("driver", "pool", "device")}
        devices["results"] = [{**result, **first} for result in devices["results"]]
    if Fault.LOSES_ADMIN_ACCESS in faults:
        for result in devices.get("results") or []:
            result.pop("adminAccess", None)
    if Fault.NO_NODE_SELECTOR in faults:
        new.pop("nodeSelector", None)
    return new


def _wanted(devices: Any) -> Iterator[Obj]:
    for request in devices.get("requests") or []:
        if request.get("exactly"):
            yield request["exactly"]
        yield from request.get("firstAvailable") or []
