"""How faults reach what the API server stores and shows.

Conversion, defaults and validation stay as they are, so a fault cannot hide in them.
"""

from __future__ import annotations

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver import conversion
from conformance.targets.reference.faults import Fault


def converted(faults: frozenset[Fault], submitted_as: str, new: Obj) -> None:
    """Spoil a new object that was just converted to its stored version, in place."""
    version = submitted_as.rpartition("/")[2]
    if Fault.WRONG_VERSION_CONVERSION in faults and version == "v1beta1":
        lose_selectors(new)
    if Fault.LOSES_CAPACITY in faults and version == "v1beta2":
        for device in conversion.devices(new):
            device.pop("capacity", None)


def checked(faults: frozenset[Fault], new: Obj) -> None:
    """Spoil a new object just before it is stored, in place."""
    if Fault.NO_REQUEST_DEFAULTS not in faults:
        return
    for request in conversion.device_requests(new):
        for wanted in (request.get("exactly") or {}, *(request.get("firstAvailable") or [])):
            for field, default in (("allocationMode", "ExactCount"), ("count", 1)):
                if wanted.get(field) == default:
                    del wanted[field]


def shown(faults: frozenset[Fault], stored: Obj, api_version: str) -> Obj:
    """A stored object in a served version, as an API server with these faults converts it."""
    if Fault.RETURNS_STORED_FORM in faults:
        return {**conversion.to_version(stored, stored["apiVersion"]), "apiVersion": api_version}
    return conversion.to_version(stored, api_version)


def lose_selectors(claim: Obj) -> None:
    """Take the selectors from the requests of a claim or template, in place."""
    for request in conversion.device_requests(claim):
        for wanted in (request.get("exactly") or {}, *(request.get("firstAvailable") or [])):
            wanted.pop("selectors", None)
