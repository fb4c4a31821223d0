"""Makes ResourceSlices of an inventory: one pool, named like the node, split as the API wants it.

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


def format_quantity(count: int) -> str:
    """Return a count as Kubernetes writes a binary quantity: in the largest unit that divides it.

    ``16106127360`` is ``15Gi``, ``1000`` is ``1000``.
    """
    unit = ""
    for larger in _UNITS:
        if count == 0 or count % 1024:
            break
        count, unit = count // 1024, larger
    return f"{count}{unit}"


def slice_name(driver_name: str, node_name: str, index: int) -> str:
    """Return a slice's name: the same each time, so that publishing again replaces what exists."""
    name = f"{index:05d}-{driver_name}-{node_name}"
    if len(name) > _MAX_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:10]
        name = f"{name[: _MAX_NAME - 11].rstrip('-.')}-{digest}"
    return name


def describe_device(device: Device) -> dict[str, Any]:
    """Return a device as an entry of a ResourceSlice's ``devices``."""
    entry: dict[str, Any] = {
        "name": device.name,
        "attributes": {name: value.to_api() for name, value in device.attributes.items()},
    }
    if device.capacity:
        entry["capacity"] = {
            name: _describe_capacity(count, device.request_policies.get(name))
            for name, count in device.capacity.items()
        }
    if device.consumes_counters:
        entry["consumesCounters"] = [
            {"counterSet": used.counter_set, "counters": _describe_counters(used.counters)}
            for used in device.consumes_counters
        ]
    if device.allow_multiple_allocations:
        entry["allowMultipleAllocations"] = True
    if device.taints:
        entry["taints"] = [_describe_taint(taint) for taint in device.taints]
    return entry


def _describe_capacity(count: int, policy: RequestPolicy | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"value": format_quantity(count)}
    if policy is not None:
        valid = {"min": format_quantity(policy.minimum), "max": format_quantity(count)}
        if policy.minimum + policy.step <= count:  # the API refuses a step that nobody can take
            valid["step"] = format_quantity(policy.step)
        entry["requestPolicy"] = {"default": format_quantity(policy.default), "validRange": valid}
    return entry


def _describe_counters(counters: Mapping[str, int]) -> dict[str, Any]:
    return {name: {"value": format_quantity(count)} for name, count in counters.items()}


def _describe_taint(taint: Taint) -> dict[str, str]:
    entry = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        entry["value"] = taint.value
    if taint.time_added:
        entry["timeAdded"] = taint.time_added
    return entry


def resource_slices(
    inventory: Inventory, *, driver_name: str, node_name: str, generation: int = 1
) -> list[dict[str, Any]]:
    """Return the ResourceSlices (resource.k8s.io/v1) of an inventory; no devices, no slice."""
    contents = list(_split_inventory(inventory))
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
                    "resourceSliceCount": len(contents),
                },
                **content,
            },
        }
        for index, content in enumerate(contents)
    ]


def _split_inventory(inventory: Inventory) -> Iterable[dict[str, Any]]:
    """Yield the variable part of each slice's spec: counter sets first, then devices."""
    sets = [
        {"name": counters.name, "counters": _describe_counters(counters.counters)}
        for counters in inventory.counter_sets
    ]
    for at in range(0, len(sets), MAX_COUNTER_SETS):
        yield {"sharedCounters": sets[at : at + MAX_COUNTER_SETS]}
    for group in _group_devices(inventory):
        for slice_devices in _split_group(group):
            yield {"devices": [describe_device(device) for device in slice_devices]}


def _group_devices(inventory: Inventory) -> list[list[Device]]:
    """Return groups of devices that stay together: those that share counters, and the others."""
    plain: list[Device] = [device for device in inventory if not device.consumes_counters]
    sharing = [device for device in inventory if device.consumes_counters]
    groups = [list(group) for _, group in groupby(sharing, key=lambda device: device.gpu_name)]
    return [group for group in (plain, *groups) if group]


def _split_group(devices: list[Device]) -> Iterable[list[Device]]:
    """Yield as many devices as one slice may hold, in order."""
    slice_devices: list[Device] = []
    advanced = False
    for device in devices:
        advanced_then = advanced or _is_advanced(device)
        if len(slice_devices) >= (MAX_ADVANCED_DEVICES if advanced_then else MAX_DEVICES):
            yield slice_devices
            slice_devices, advanced_then = [], _is_advanced(device)
        slice_devices.append(device)
        advanced = advanced_then
    if slice_devices:
        yield slice_devices


def _is_advanced(device: Device) -> bool:
    """Return whether a device makes the API's limit of a slice 64 devices."""
    has_list_attribute = any(attribute.type == "ints" for attribute in device.attributes.values())
    return bool(device.taints or device.consumes_counters or has_list_attribute)
