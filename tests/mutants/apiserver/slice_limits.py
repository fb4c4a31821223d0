"""What is as large as it may be, and is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kube.values import Obj
from kubesim.apiserver.conversion import list_devices
from tests.mutants.apiserver.overlooked_fields import CHANGED, NEW, SLICE, refuses
from tests.mutants.replacing import Defects, Mutation


def _slices(what: Callable[[Obj], bool]) -> Mutation:
    return refuses(what, SLICE, at=(NEW, CHANGED))


def _device(what: Callable[[Any], bool]) -> Mutation:
    return _slices(lambda obj: any(what(device) for device in list_devices(obj)))


def _long(field: str, most: int) -> Mutation:
    return _device(lambda device: len(device.get(field) or ()) >= most)


def _policies(device: Obj) -> Iterator[Obj]:
    for capacity in (device.get("capacity") or {}).values():
        if capacity.get("requestPolicy"):
            yield capacity["requestPolicy"]


def _texts(device: Obj) -> Iterator[str]:
    for attribute in (device.get("attributes") or {}).values():
        for value in attribute.values():
            yield from (text for text in (value if isinstance(value, list) else [value]))


def _consumed(device: Obj) -> list[Obj]:
    return device.get("consumesCounters") or []


def _values(device: Obj) -> int:
    attributes = (device.get("attributes") or {}).values()
    return sum(len(v) if isinstance(v, list) else 1 for a in attributes for v in a.values())


DEFECTS: Defects = {
    "refuses-128-devices": _slices(lambda obj: len(list_devices(obj)) >= 128),
    "refuses-64-devices-with-counters": _slices(
        lambda obj: len(list_devices(obj)) >= 64 and any(_consumed(d) for d in list_devices(obj))
    ),
    "refuses-32-attributes-and-capacities": _device(
        lambda d: len(d.get("attributes") or ()) + len(d.get("capacity") or ()) >= 32
    ),
    "refuses-48-attribute-values": _device(lambda device: _values(device) >= 48),
    "refuses-16-taints": _long("taints", 16),
    "refuses-4-binding-conditions": _long("bindingConditions", 4),
    "refuses-2-consumed-counter-sets": _long("consumesCounters", 2),
    "refuses-32-consumed-counters": _device(
        lambda device: any(len(one["counters"]) >= 32 for one in _consumed(device))
    ),
    "refuses-2-compatibility-groups": _device(
        lambda d: any(len(one.get("compatibilityGroups") or ()) >= 2 for one in _consumed(d))
    ),
    "refuses-8-counter-sets": _slices(lambda obj: len(obj["spec"].get("sharedCounters") or ()) > 7),
    "refuses-32-counters-in-a-set": _slices(
        lambda obj: any(len(s["counters"]) >= 32 for s in obj["spec"].get("sharedCounters") or ())
    ),
    "refuses-10-valid-values": _device(
        lambda d: any(len(policy.get("validValues") or ()) >= 10 for policy in _policies(d))
    ),
    "refuses-a-step-to-the-whole-capacity": _device(
        lambda d: any(
            (policy.get("validRange") or {}).get("max") == capacity.get("value")
            for capacity in (d.get("capacity") or {}).values()
            for policy in [capacity.get("requestPolicy") or {}]
        )
    ),
    "refuses-strings-of-64-bytes": _device(
        lambda d: any(isinstance(text, str) and len(text) >= 64 for text in _texts(d))
    ),
    "refuses-device-names-of-63-letters": _device(lambda device: len(device["name"]) >= 63),
    "refuses-pool-names-of-253-letters": _slices(lambda o: len(o["spec"]["pool"]["name"]) >= 253),
    "refuses-pool-names-with-slashes": _slices(lambda o: "/" in o["spec"]["pool"]["name"]),
    "refuses-driver-names-of-63-letters": _slices(lambda obj: len(obj["spec"]["driver"]) >= 63),
    "refuses-generation-0": _slices(lambda obj: not obj["spec"]["pool"].get("generation")),
    "refuses-slices-without-devices": _slices(
        lambda obj: not list_devices(obj) and not obj["spec"].get("sharedCounters")
    ),
}
