"""Which features meet in a scenario, read from its objects and not from what it says of itself.

Features meet in a pod: those of its claims and extended resources, of all devices, classes and
taint rules of the scenario, and of what is done to its claims and asked about it. Two pods that use
a feature each are no meeting. What the API server has to refuse never meets anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.scenario.loader import LoadedScenario
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.extended import IMPLICIT_PREFIX

Obj = dict[str, Any]
Test = Callable[[Obj], bool]

_STATUS_RIGHTS: Final = ("resourceclaims/driver", "resourceclaims/binding")
_DRIVER: Final = re.compile(r"device\.driver == [\"']([^\"']+)")
_EXTENDED: Final = re.compile(r"[a-z0-9.${}-]+/.+")


def _fractions(device: Obj) -> bool:
    """Whether a range of its capacity is told in parts of a unit."""
    return any(
        parse_quantity(text).nanos % 10**9
        for capacity in device.get("capacity", {}).values()
        for text in (capacity.get("requestPolicy", {}).get("validRange") or {}).values()
    )


OF_DEVICES: Final[Mapping[str, Test]] = {
    "ConsumableCapacity": lambda device: bool(device.get("allowMultipleAllocations")),
    "DeviceBindingConditions": lambda device: "bindingConditions" in device,
    "DeviceTaints": lambda device: "taints" in device,
    "FractionalCapacityRange": _fractions,
    "PartitionableDevices": lambda device: "consumesCounters" in device,
}
"""Feature -> whether a published device has it."""

OF_REQUESTS: Final[Mapping[str, Test]] = {
    "AdminAccess": lambda wanted: bool(wanted.get("adminAccess")),
    "AllocationModeAll": lambda wanted: wanted.get("allocationMode") == "All",
    "CELSelectors": lambda wanted: "selectors" in wanted,
    "ConsumableCapacity": lambda wanted: "capacity" in wanted,
    "DeviceTaints": lambda wanted: "tolerations" in wanted,
}
"""Feature -> whether a request has it, or one of its alternatives."""

OF_CLAIMS: Final[Mapping[str, Test]] = {
    "ConsumableCapacity": lambda spec: any(
        "distinctAttribute" in one for one in spec.get("constraints", ())
    ),
    "MatchAttribute": lambda spec: any(
        "matchAttribute" in one for one in spec.get("constraints", ())
    ),
    "MultipleRequests": lambda spec: len(spec.get("requests", ())) > 1,
    "OpaqueConfiguration": lambda spec: "config" in spec,
    "PrioritizedList": lambda spec: any(
        "firstAvailable" in request for request in spec.get("requests", ())
    ),
}
"""Feature -> whether the devices of a claim, ``spec.devices``, have it."""

FEATURES: Final = (
    "AdminAccess",
    "AllocationModeAll",
    "CELSelectors",
    "ConsumableCapacity",
    "DeviceBindingConditions",
    "DeviceHealth",
    "DeviceHealthMessage",
    "DeviceStatus",
    "DeviceTaintRules",
    "DeviceTaints",
    "ExtendedResource",
    "FractionalCapacityRange",
    "GranularStatusAuthorization",
    "MatchAttribute",
    "MultipleRequests",
    "OpaqueConfiguration",
    "PartitionableDevices",
    "PodResources",
    "PrioritizedList",
    "SeveralDrivers",
)
"""Those with a gate that is on in 1.37, and those of the core that have rules of their own."""


def meetings(loaded: LoadedScenario) -> frozenset[frozenset[str]]:
    """The features of each pod of a scenario."""
    return frozenset(_Scenario(loaded.document.data["spec"]).pods())


def _matching(tests: Mapping[str, Test], one: Obj) -> set[str]:
    return {feature for feature, test in tests.items() if test(one)}


class _Scenario:
    """The objects of one scenario, by kind."""

    def __init__(self, spec: Obj) -> None:
        self._steps: Sequence[Obj] = spec["steps"]
        self._objects = [*_written(self._steps)]
        self._classes = self._of_kind("DeviceClass")
        self._claims = {
            (kind, item["metadata"]["name"]): devices
            for kind in ("ResourceClaim", "ResourceClaimTemplate")
            for item in self._of_kind(kind)
            if (devices := _devices_of(kind, item))
        }
        self._everywhere = self._of_all_pods(spec)

    def pods(self) -> Iterator[frozenset[str]]:
        """The features of each."""
        for item in self._objects:
            for pod in _pods_in(item):
                yield frozenset(self._everywhere | self._of_pod(pod, item["metadata"]["name"]))

    def _of_kind(self, kind: str) -> list[Obj]:
        return [item for item in self._objects if item.get("kind") == kind]

    def _of_all_pods(self, spec: Obj) -> set[str]:
        found: set[str] = set()
        for item in self._of_kind("ResourceSlice"):
            for device in item["spec"].get("devices") or ():
                found |= _matching(OF_DEVICES, device)
        if self._of_kind("DeviceTaintRule"):
            found.add("DeviceTaintRules")
        if any("config" in item.get("spec", {}) for item in self._classes):
            found.add("OpaqueConfiguration")
        rights = [
            rule for one in spec.get("accounts", {}).values() for rule in one.get("rules", ())
        ]
        if any(right in rule["resources"] for rule in rights for right in _STATUS_RIGHTS):
            found.add("GranularStatusAuthorization")
        if any("stimulate" in step for step in self._steps):
            found.add("DeviceHealth")
            if any(
                "allocatedResourcesStatus" in text and "message" in text for text in self._asked()
            ):
                found.add("DeviceHealthMessage")
            # A driver taints by itself what is unhealthy.
            if any(".taints." in text for text in self._asked()):
                found.add("DeviceTaints")
        return found

    def _asked(self) -> Iterator[str]:
        for step in self._steps:
            yield from map(str, step.get("expect", ()))

    def _of_pod(self, pod: Obj, name: str) -> set[str]:
        found: set[str] = set()
        drivers: set[str] = set()
        named = set()
        for entry in pod.get("resourceClaims") or ():
            for kind, field in (
                ("ResourceClaim", "resourceClaimName"),
                ("ResourceClaimTemplate", "resourceClaimTemplateName"),
            ):
                named.add((kind, entry.get(field)))
        for key in named & self._claims.keys():
            devices = self._claims[key]
            found |= _matching(OF_CLAIMS, devices)
            for wanted in _wanted(devices):
                found |= _matching(OF_REQUESTS, wanted)
                drivers |= self._drivers_of(wanted.get("deviceClassName", ""))
        containers = _extended(pod)
        if containers:
            found.add("ExtendedResource")
            for one in self._classes:
                drivers |= self._drivers_of(one["metadata"]["name"])
                if _DRIVER.sub("", _expressions(one)).strip("\"' "):
                    found.add("CELSelectors")
        if containers > 1:
            found.add("MultipleRequests")
        if len(drivers) > 1:
            found.add("SeveralDrivers")
        claims = {claim for kind, claim in named if kind == "ResourceClaim"}
        if self._reported(claims, extended="ExtendedResource" in found):
            found.add("DeviceStatus")
        if any("podResources" in text and f"{name}/" in text for text in self._asked()):
            found.add("PodResources")
        return found

    def _drivers_of(self, class_name: str) -> set[str]:
        """Those that the expressions of a class name."""
        for item in self._classes:
            if item["metadata"]["name"] == class_name:
                return {*_DRIVER.findall(_expressions(item))} or {"${driver}"}
        return {"${other.driver}" if class_name.startswith("${other.") else "${driver}"}

    def _reported(self, claims: set[str], *, extended: bool) -> bool:
        """Whether a step reports on devices in the status of one of the claims."""
        for step in self._steps:
            how = step.get("patch") or step.get("serverSideApply") or {}
            change = how.get("object") or how
            if how.get("subresource") != "status" or change.get("kind") != "ResourceClaim":
                continue
            name = change.get("name") or change.get("metadata", {}).get("name")
            told = str(change.get("patch") or change.get("status"))
            if (name in claims or extended) and "devices" in told:
                return True
        return False


def _written(steps: Sequence[Obj]) -> Iterator[Obj]:
    """Every object that a step gives to the API server; of a patch what it sets."""
    for step in steps:
        yield from step.get("apply", ())
        yield from step.get("churn", {}).get("objects", ())
        for verb in ("update", "serverSideApply"):
            if item := step.get(verb, {}).get("object"):
                yield item
        patch = step.get("patch") or {}
        if isinstance(patch.get("patch"), dict) and patch.get("kind") == "ResourceSlice":
            yield {"kind": "ResourceSlice", "spec": {}} | patch["patch"]


def _devices_of(kind: str, item: Obj) -> Obj:
    spec: Obj = item.get("spec") or {}
    if kind == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    return spec.get("devices") or {}


def _wanted(devices: Obj) -> Iterator[Obj]:
    for request in devices.get("requests", ()):
        # In v1beta1 a request is flat.
        yield from request.get("firstAvailable") or [request.get("exactly") or request]


def _pods_in(item: Obj) -> Iterator[Obj]:
    spec = item.get("spec") or {}
    if item.get("kind") == "Pod":
        yield spec
    elif "template" in spec:
        yield spec["template"].get("spec") or {}


def _expressions(device_class: Obj) -> str:
    selectors = (device_class.get("spec") or {}).get("selectors") or ()
    return " ".join(one["cel"]["expression"] for one in selectors)


def _extended(pod: Obj) -> int:
    """How many containers ask for a resource that a device may stand for."""
    return sum(
        any(
            name.startswith(IMPLICIT_PREFIX) or _EXTENDED.fullmatch(name)
            for name in ((container.get("resources") or {}).get("limits") or {})
        )
        for container in (*pod.get("containers", ()), *(pod.get("initContainers") or ()))
    )
