"""Checks of a ResourceSlice: pool, node selection, devices with attributes and capacity.

Source: pkg/apis/resource/validation/validation.go, validateResourceSliceSpec and validateDevice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conformance.targets.reference.apiserver.validation import names
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    each,
    invalid,
    not_supported,
    required,
    too_long,
    unique,
)
from conformance.targets.seam.values import Obj
from reference_allocator.api.limits import (
    ATTRIBUTE_VALUE_MAX,
    ATTRIBUTES_AND_CAPACITIES_MAX,
    CONSUMES_COUNTERS_MAX,
    COUNTER_SETS_MAX,
    TAINTS_MAX,
    devices_max,
)
from reference_allocator.api.semver import SemverError, parse_semver

_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes")
_NODE_OPERATIONS: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")
_VALUES: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_LISTS: Final = ("bools", "ints", "strings", "versions")


def check_slice(resource_slice: Obj) -> Iterator[FieldError]:
    spec = resource_slice.get("spec") or {}
    yield from names.driver(spec.get("driver") or "", "spec.driver")
    pool = spec.get("pool") or {}
    yield from names.pool(pool.get("name") or "", "spec.pool.name")
    if (pool.get("resourceSliceCount") or 0) <= 0:
        count = pool.get("resourceSliceCount") or 0
        yield invalid("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if (pool.get("generation") or 0) < 0:
        detail = "must be greater than or equal to zero"
        yield invalid("spec.pool.generation", pool["generation"], detail)
    yield from _node_selection(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    devices = spec.get("devices") or []
    per_device = bool(spec.get("perDeviceNodeSelection"))
    yield from unique(
        devices,
        devices_max(devices),
        lambda device, path: _device(device, path, per_device=per_device),
        lambda device: device.get("name") or "",
        "spec.devices",
    )
    yield from _skipped(spec.get("skipNodeOperations") or [])
    yield from unique(
        spec.get("sharedCounters") or [],
        COUNTER_SETS_MAX,
        lambda counter_set, path: _counters(counter_set, "name", path),
        lambda counter_set: counter_set.get("name") or "",
        "spec.sharedCounters",
    )


def _skipped(operations: list[str]) -> Iterator[FieldError]:
    """What the kubelet need not ask the driver for (``validateSkipNodeOperations``)."""
    for index, operation in enumerate(operations):
        if operation not in _NODE_OPERATIONS:
            yield not_supported(f"spec.skipNodeOperations[{index}]", operation, _NODE_OPERATIONS)
    if "NodePrepareResources" in operations and not {"*", "NodeUnprepareResources"} & {*operations}:
        detail = (
            "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        )
        yield invalid("spec.skipNodeOperations", operations, detail)


def check_taint_rule(rule: Obj) -> Iterator[FieldError]:
    """A new or changed DeviceTaintRule: what it selects, and the taint."""
    spec = rule.get("spec") or {}
    selector = spec.get("deviceSelector") or {}
    checks = (("driver", names.driver), ("pool", names.pool), ("device", names.label))
    for field, check in checks:
        if selector.get(field) is not None:
            yield from check(selector[field], f"spec.deviceSelector.{field}")
    yield from _taint(spec.get("taint") or {}, "spec.taint")


def check_slice_update(new: Obj, old: Obj) -> Iterator[FieldError]:
    """The parts of a slice that identify it do not change."""
    yield from check_slice(new)
    new_spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    for path, value, before in (
        ("pool.name", (new_spec.get("pool") or {}).get("name"), old_spec["pool"]["name"]),
        ("driver", new_spec.get("driver"), old_spec["driver"]),
        ("nodeName", new_spec.get("nodeName"), old_spec.get("nodeName")),
    ):
        if value != before:
            yield invalid(f"spec.{path}", value, "field is immutable")


def _node_selection(spec: Obj) -> Iterator[FieldError]:
    chosen = []
    if spec.get("nodeName") is not None:
        if spec["nodeName"]:
            chosen.append("`nodeName`")
            yield from names.subdomain(spec["nodeName"], "spec.nodeName")
        else:
            detail = "must be either unset or set to a non-empty string"
            yield invalid("spec.nodeName", "", detail)
    if spec.get("nodeSelector") is not None:
        chosen.append("`nodeSelector`")
        terms = spec["nodeSelector"].get("nodeSelectorTerms") or []
        if not terms:
            detail = "must have at least one node selector term"
            yield required("spec.nodeSelector.nodeSelectorTerms", detail)
        if len(terms) != 1:
            detail = "must have exactly one node selector term"
            yield invalid("spec.nodeSelector.nodeSelectorTerms", terms, detail)
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            chosen.append(f"`{field}`")
        elif spec.get(field) is not None:
            yield invalid(f"spec.{field}", spec[field], "must be either unset or set to true")
    rule = (
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is "
        "required"
    )
    if not chosen:
        yield required("spec", rule)
    elif len(chosen) > 1:
        shown = "{" + ", ".join(chosen) + "}"
        yield invalid("spec", shown, f"{rule}, but multiple fields are set")


def _device(device: Obj, path: str, *, per_device: bool) -> Iterator[FieldError]:
    yield from names.label(device.get("name") or "", f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    total = len(attributes) + len(capacity)
    if total > ATTRIBUTES_AND_CAPACITIES_MAX:
        most = ATTRIBUTES_AND_CAPACITIES_MAX
        detail = f"the total number of attributes and capacities must not exceed {most}"
        yield invalid(path, total, detail)
    for name, attribute in attributes.items():
        yield from names.qualified(name, f"{path}.attributes")
        yield from _attribute(attribute, f"{path}.attributes[{name}]")
    for name, value in capacity.items():
        yield from names.qualified(name, f"{path}.capacity")
        if value.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            detail = "allowMultipleAllocations must be true"
            inner = f"{path}.capacity[{name}].requestPolicy"
            yield FieldError(inner, "FieldValueForbidden", f"Forbidden: {detail}")
    yield from each(device.get("taints") or [], TAINTS_MAX, _taint, f"{path}.taints")
    yield from unique(
        device.get("consumesCounters") or [],
        CONSUMES_COUNTERS_MAX,
        lambda consumption, path: _counters(consumption, "counterSet", path),
        lambda consumption: consumption.get("counterSet") or "",
        f"{path}.consumesCounters",
    )
    chosen = [field for field in _NODE_FIELDS if device.get(field)]
    if per_device and len(chosen) != 1:
        rule = (
            "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        )
        if chosen:
            shown = "{" + ", ".join(f"`{field}`" for field in chosen) + "}"
            yield invalid(path, shown, rule)
        else:
            yield required(path, rule)
    elif not per_device and any(device.get(field) is not None for field in _NODE_FIELDS):
        yield invalid(
            path,
            None,
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
        )


def _attribute(attribute: Obj, path: str) -> Iterator[FieldError]:
    values = [field for field, value in attribute.items() if value is not None]
    for field in values:
        texts = attribute[field] if field in _LISTS else [attribute[field]]
        if field in _LISTS and not texts:
            yield invalid(f"{path}.{field}", texts, "must not be empty if specified")
        for index, text in enumerate(texts):
            inner = f"{path}.{field}[{index}]" if field in _LISTS else f"{path}.{field}"
            if field.startswith("version") and not _is_semver(text):
                yield invalid(inner, text, "must be a string compatible with semver.org spec 2.0.0")
            if isinstance(text, str) and len(text) > ATTRIBUTE_VALUE_MAX:
                yield too_long(inner, ATTRIBUTE_VALUE_MAX)
    listed = ", ".join(f"`{field}`" for field in _VALUES)
    if not values:
        yield invalid(path, "", f"must specify one of: {listed}")
    elif len(values) > 1:
        shown = "{" + ", ".join(field for field in _VALUES if field in values) + "}"
        yield invalid(path, shown, f"must specify exactly one of: {listed}")


def _is_semver(text: str) -> bool:
    try:
        parse_semver(text)
    except SemverError:
        return False
    return True


def _taint(taint: Obj, path: str) -> Iterator[FieldError]:
    yield from names.label_key(taint.get("key") or "", f"{path}.key")
    yield from names.label_value(taint.get("value") or "", f"{path}.value")
    effects = ("NoExecute", "NoSchedule", "None")
    if not taint.get("effect"):
        yield required(f"{path}.effect")
    elif taint["effect"] not in effects:
        yield not_supported(f"{path}.effect", taint["effect"], effects)


def _counters(holder: Obj, field: str, path: str) -> Iterator[FieldError]:
    if not holder.get(field):
        yield required(f"{path}.{field}")
    else:
        yield from names.label(holder[field], f"{path}.{field}")
    if not holder.get("counters"):
        yield required(f"{path}.counters")
    for name in holder.get("counters") or {}:
        yield from names.label(name, f"{path}.counters")
