"""How faults reach the allocator: they change what it is told, or what becomes of its answer.

The allocator itself stays as it is, so a fault cannot hide in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.targets.base import Obj
from conformance.targets.reference.faults import Fault
from conformance.targets.reference.store import clone


def claims(faults: frozenset[Fault], originals: Sequence[Obj]) -> list[Obj]:
    """The claims to allocate, as a scheduler with these faults reads them."""
    if not faults:
        return list(originals)
    changed = [clone(claim) for claim in originals]
    for claim in changed:
        devices = claim["spec"].get("devices") or {}
        if Fault.IGNORE_MATCH_ATTRIBUTE in faults:
            devices.pop("constraints", None)
        for wanted in _wanted(devices):
            if Fault.IGNORE_SELECTORS in faults:
                wanted.pop("selectors", None)
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
    if not {Fault.ANY_NODE, Fault.SELECTORS_SEE_NO_ATTRIBUTES} & faults:
        return list(originals)
    changed = [clone(resource_slice) for resource_slice in originals]
    for resource_slice in changed:
        spec = resource_slice["spec"]
        if Fault.ANY_NODE in faults and spec.pop("nodeName", None):
            spec["allNodes"] = True
        if Fault.SELECTORS_SEE_NO_ATTRIBUTES in faults:
            for device in spec.get("devices") or []:
                device.pop("attributes", None)
    return changed


def allocated(faults: frozenset[Fault], originals: Sequence[Obj]) -> list[Obj]:
    """The claims whose devices are in use, as a scheduler with these faults sees them."""
    return [] if Fault.DOUBLE_ALLOCATION in faults else list(originals)


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
    if Fault.NO_NODE_SELECTOR in faults:
        new.pop("nodeSelector", None)
    return new


def _wanted(devices: Any) -> Iterator[Obj]:
    for request in devices.get("requests") or []:
        if request.get("exactly"):
            yield request["exactly"]
        yield from request.get("firstAvailable") or []
