"""Checks of a ResourceSlice but for its devices, and of a DeviceTaintRule.

Source: ``validateResourceSliceSpec`` in pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kube.values import Obj
from kubesim.goforms import show_internal
from kubesim.validation import names
from kubesim.validation.conditions import check_conditions
from kubesim.validation.constraints import Expressions
from kubesim.validation.device import check_counters, check_device, check_taint
from kubesim.validation.errors import (
    FieldError,
    check_fields,
    check_unique,
    duplicate,
    invalid,
    not_supported,
    required,
)
from kubesim.validation.nodes import check_node_selector
from reference_allocator.api.limits import COUNTER_SETS_MAX, devices_max

_NODE_OPERATIONS: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")


def check_slice(
    resource_slice: Obj, old: Obj | None = None, server: Expressions | None = None
) -> Iterator[FieldError]:
    """Check a new slice, or one that was ``old`` before it was changed.

    ``server``: what the API server is; None for the newest that is known.
    """
    spec = resource_slice.get("spec") or {}
    old_devices = {
        device["name"]: device for device in ((old or {}).get("spec") or {}).get("devices") or []
    }
    yield from names.check_driver_name(spec.get("driver") or "", "spec.driver")
    pool = spec.get("pool") or {}
    yield from names.check_pool_name(pool.get("name") or "", "spec.pool.name")
    if (pool.get("resourceSliceCount") or 0) <= 0:
        count = pool.get("resourceSliceCount") or 0
        yield invalid("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if (pool.get("generation") or 0) < 0:
        detail = "must be greater than or equal to zero"
        yield invalid("spec.pool.generation", pool["generation"], detail)
    if old is not None:
        yield from _check_identity(spec, old["spec"])
    yield from _check_node_selection(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    devices, counter_sets = spec.get("devices") or [], spec.get("sharedCounters") or []
    per_device = bool(spec.get("perDeviceNodeSelection"))

    def check(device: Obj, path: str) -> Iterator[FieldError]:
        old_device = old_devices.get(device.get("name") or "")
        yield from check_device(device, old_device, path, per_device=per_device, server=server)

    yield from check_unique(devices, devices_max(devices), check, "spec.devices")
    counters = partial(check_counters, field="name")
    yield from check_unique(counter_sets, COUNTER_SETS_MAX, counters, "spec.sharedCounters")
    if spec.get("partitionTypeAttribute") is not None:
        yield from _check_partition_type(spec, spec["partitionTypeAttribute"])
    yield from check_skipped(spec.get("skipNodeOperations") or [], "spec.skipNodeOperations")


def _check_partition_type(spec: Obj, name: str) -> Iterator[FieldError]:
    """Check that devices that consume counters say what they are (partitionTypeAttribute)."""
    devices = list(enumerate(spec.get("devices") or []))
    partitions = [(index, device) for index, device in devices if device.get("consumesCounters")]
    path = "spec.partitionTypeAttribute"
    if not partitions:
        detail = "may only be set on a slice which declares devices that consume counters"
        yield invalid(path, name, detail)
    problems = list(names.check_fully_qualified_name(name, path))
    yield from problems
    bare = name.removeprefix(f"{spec.get('driver')}/")
    for index, device in () if problems else partitions:
        attributes = device.get("attributes") or {}
        attribute = attributes.get(name) or attributes.get(bare)
        inner = f"spec.devices[{index}].attributes[{name}]"
        if attribute is None:
            detail = (
                "device consumes counters and `partitionTypeAttribute` names this attribute, so it "
                "must be set"
            )
            yield required(inner, detail)
        elif attribute.get("string") is None:
            detail = "must be a string value because `partitionTypeAttribute` names this attribute"
            yield invalid(inner, attribute, detail)


def check_skipped(operations: list[str], path: str) -> Iterator[FieldError]:
    """Check what the kubelet need not ask the driver for (``validateSkipNodeOperations``)."""
    for index, operation in enumerate(operations):
        if operation in operations[:index]:
            yield duplicate(f"{path}[{index}]", operation)
        if operation not in _NODE_OPERATIONS:
            yield not_supported(f"{path}[{index}]", operation, _NODE_OPERATIONS)
    if "NodePrepareResources" in operations and not {"*", "NodeUnprepareResources"} & {*operations}:
        detail = (
            "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        )
        yield invalid(path, operations, detail)


def check_taint_rule(rule: Obj, server: Expressions) -> Iterator[FieldError]:
    """Check a new or changed DeviceTaintRule: what it selects, and the taint."""
    spec = rule.get("spec") or {}
    selector = spec.get("deviceSelector") or {}
    named = {
        field: check for field, check in names.DEVICE.items() if selector.get(field) is not None
    }
    yield from check_fields(selector, "spec.deviceSelector", named)
    yield from check_taint(spec.get("taint") or {}, "spec.taint", server)


def check_taint_rule_status(rule: Obj) -> Iterator[FieldError]:
    """Check a changed status of a DeviceTaintRule (``ValidateDeviceTaintRuleStatusUpdate``)."""
    status = rule.get("status") or {}
    errors = check_conditions(status.get("conditions") or [], "status.conditions")
    # How many there are is told last.
    yield from sorted(errors, key=lambda error: error.path == "status.conditions")


def _check_identity(new_spec: Obj, old_spec: Obj) -> Iterator[FieldError]:
    """Check that the parts of a slice that identify it have not changed."""
    for path, value, old_value in (
        ("pool.name", (new_spec.get("pool") or {}).get("name") or "", old_spec["pool"]["name"]),
        ("driver", new_spec.get("driver") or "", old_spec["driver"]),
        ("nodeName", new_spec.get("nodeName"), old_spec.get("nodeName")),
    ):
        if value != old_value:
            yield invalid(f"spec.{path}", value, "field is immutable")


def _check_node_selection(spec: Obj) -> Iterator[FieldError]:
    chosen_fields = []
    if spec.get("nodeName") is not None:
        if spec["nodeName"]:
            chosen_fields.append("`nodeName`")
            yield from names.check_subdomain(spec["nodeName"], "spec.nodeName")
        else:
            detail = "must be either unset or set to a non-empty string"
            yield invalid("spec.nodeName", "", detail)
    if spec.get("nodeSelector") is not None:
        chosen_fields.append("`nodeSelector`")
        terms = spec["nodeSelector"].get("nodeSelectorTerms") or []
        yield from check_node_selector(spec["nodeSelector"], "spec.nodeSelector")
        if len(terms) != 1:
            detail = "must have exactly one node selector term"
            if spec["nodeSelector"].get("nodeSelectorTerms") is None:
                shown = None
            else:
                shown = show_internal("[]core/v1.NodeSelectorTerm", terms)
            yield invalid("spec.nodeSelector.nodeSelectorTerms", shown, detail)
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            chosen_fields.append(f"`{field}`")
        elif spec.get(field) is not None:
            yield invalid(f"spec.{field}", spec[field], "must be either unset or set to true")
    rule = (
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is "
        "required"
    )
    if not chosen_fields:
        yield required("spec", rule)
    elif len(chosen_fields) > 1:
        chosen_set = "{" + ", ".join(chosen_fields) + "}"
        yield invalid("spec", chosen_set, f"{rule}, but multiple fields are set")
