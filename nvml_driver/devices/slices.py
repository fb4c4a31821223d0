"""ResourceSlices of an inventory: one pool, named like the node, split where the API wants it.

Limits (k8s.io/api/resource/v1/types.go): 128 devices in a slice, 64 if one of them has taints,
consumes counters or has a list attribute, and 8 counter sets. All slices of one generation say how
many there are, so that nobody takes a part of the pool for the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from nvml_driver.model.inventory import Device, Inventory, RequestPolicy, Taint

MAX_DEVICES = 128
MAX_ADVANCED_DEVICES = 64
MAX_COUNTER_SETS = 8
_MAX_NAME = 253  # a DNS subdomain
_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def quantity(count: int) -> str:
    """A count as Kubernetes writes a binary quantity: the largest unit that divides it.

    ``16106127360`` is ``15Gi``, ``1000`` is ``1000``.
    """
    unit = ""
    for larger in _UNITS:
        if count == 0 or count % 1024:
            break
        count, unit = count // 1024, larger
    return f"{count}{unit}"


def slice_name(driver_name: str, node_name: str, index: int) -> str:
    """A slice's name: the same each time, so that publishing again finds what is there."""
    name = f"{index:05d}-{driver_name}-{node_name}"
    if len(name) > _MAX_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:10]
        name = f"{name[: _MAX_NAME - 11].rstrip('-.')}-{digest}"
    return name


def device(device: Device) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": device.name,
        "attributes": {name: value.to_api() for name, value in device.attributes.items()},
    }
    if device.capacity:
        entry["capacity"] = {
            name: _capacity(count, device.request_policies.get(name))
            for name, count in device.capacity.items()
        }
    if device.consumes_counters:
        entry["consumesCounters"] = [
            {"counterSet": used.counter_set, "counters": _counters(used.counters)}
            for used in device.consumes_counters
        ]
    if device.allow_multiple_allocations:
        entry["allowMultipleAllocations"] = True
    if device.taints:
        entry["taints"] = [_taint(taint) for taint in device.taints]
    return entry


def _capacity(count: int, policy: RequestPolicy | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"value": quantity(count)}
    if policy is not None:
        valid = {"min": quantity(policy.minimum), "max": quantity(count)}
        if policy.minimum + policy.step <= count:  # the API refuses a step that nobody can take
            valid["step"] = quantity(policy.step)
        entry["requestPolicy"] = {"default": quantity(policy.default), "validRange": valid}
    return entry


def _counters(counters: Mapping[str, int]) -> dict[str, Any]:
    return {name: {"value": quantity(count)} for name, count in counters.items()}


def _taint(taint: Taint) -> dict[str, str]:
    entry = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        entry["value"] = taint.value
    if taint.time_added:
        entry["timeAdded"] = taint.time_added
    return entry


def resource_slices(
    inventory: Inventory, *, driver_name: str, node_name: str, generation: int = 1
) -> list[dict[str, Any]]:
    """The ResourceSlices (resource.k8s.io/v1) that publish an inventory; no devices, no slice."""
    parts = list(_parts(inventory))
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": slice_name(driver_name, node_name, index)},
            "spec": {
                "driver": driver_name,
                "nodeName": node_name,
                "pool": {
                    "name": node_name,
                    "generation": generation,
                    "resourceSliceCount": len(parts),
                },
                **part,
            },
        }
        for index, part in enumerate(parts)
    ]


def _parts(inventory: Inventory) -> Iterable[dict[str, Any]]:
    sets = [
        {"name": counters.name, "counters": _counters(counters.counters)}
        for counters in inventory.counter_sets
    ]
    for at in range(0, len(sets), MAX_COUNTER_SETS):
        yield {"sharedCounters": sets[at : at + MAX_COUNTER_SETS]}
    for group in _groups(inventory):
        for part in _split(group):
            yield {"devices": [device(each) for each in part]}


def _groups(inventory: Inventory) -> list[list[Device]]:
    """What stays together: the devices of a GPU that share counters; all others."""
    plain: list[Device] = [each for each in inventory if not each.consumes_counters]
    sharing = [each for each in inventory if each.consumes_counters]
    groups = [list(group) for _, group in groupby(sharing, key=lambda each: each.gpu_name)]
    return [group for group in (plain, *groups) if group]


def _split(devices: list[Device]) -> Iterable[list[Device]]:
    part: list[Device] = []
    advanced = False
    for each in devices:
        advanced_then = advanced or _is_advanced(each)
        if len(part) >= (MAX_ADVANCED_DEVICES if advanced_then else MAX_DEVICES):
            yield part
            part, advanced_then = [], _is_advanced(each)
        part.append(each)
        advanced = advanced_then
    if part:
        yield part


def _is_advanced(each: Device) -> bool:
    lists = any(attribute.type == "ints" for attribute in each.attributes.values())
    return bool(each.taints or each.consumes_counters or lists)
