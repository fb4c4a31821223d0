"""Taints of devices, the tolerations of requests, and DeviceTaintRules (KEP-5055).

A DeviceTaintRule puts an administrator's taint on devices of any driver. The scheduler sees slices
as if the drivers had published those taints, so rules are applied before anything else. Source: the
slice tracker in k8s.io/dynamic-resource-allocation/resourceslice/tracker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reference_allocator.api import Taint, Toleration
from reference_allocator.api.reading import (
    expect_object,
    optional_string,
    read_child,
    required_child,
)

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
"""Effects that keep a device from being allocated; all others, also unknown ones, do not."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether one toleration covers one taint.

    An empty effect or key covers all; the operator Equal, also where it is empty, compares the
    value, Exists does not; an unknown operator covers nothing (resourceclaim.ToleratesTaint).
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def blocking_taint(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Return the first taint that keeps a request with these tolerations off a device, or None."""
    for taint in taints:
        if taint.effect in BLOCKING_EFFECTS and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            return taint
    return None


Object = Mapping[str, Any]


def apply_taint_rules(slices: Sequence[Object], rules: Iterable[Object]) -> list[Object]:
    """Return v1 ResourceSlices with the taints of v1 DeviceTaintRules on the devices they select.

    An empty selector selects every device, a rule without a selector none. Rules apply in the order
    of their names (upstream's order is random); slices that no rule concerns are passed on as they
    are.

    Raises:
        InputError: a rule has not the form of a DeviceTaintRule.
    """
    named_rules = [rule for rule in map(_read_rule, rules) if rule is not None]
    named_rules.sort(key=lambda rule: rule[0])
    return [_apply_rules(item, named_rules) for item in slices]


_Rule = tuple[str, Mapping[str, str], Object]


def _read_rule(rule: Object) -> _Rule | None:
    metadata = read_child(rule, "metadata", expect_object) or {}
    spec = required_child(rule, "spec", expect_object)
    selector = read_child(spec, "deviceSelector", expect_object)
    if selector is None:
        return None
    selected = {key: optional_string(selector, key) for key in ("driver", "pool", "device")}
    conditions = {key: value for key, value in selected.items() if value is not None}
    return metadata.get("name", ""), conditions, required_child(spec, "taint", expect_object)


def _apply_rules(item: Object, rules: Sequence[_Rule]) -> Object:
    spec = item["spec"]
    pool_of_slice = {"driver": spec["driver"], "pool": spec["pool"]["name"]}
    concerned = [
        rule
        for rule in rules
        if all(pool_of_slice[key] == value for key, value in rule[1].items() if key != "device")
    ]
    if not concerned or not spec.get("devices"):
        return item
    devices = [_add_taints(device, concerned) for device in spec["devices"]]
    return {**item, "spec": {**spec, "devices": devices}}


def _add_taints(device: Object, rules: Sequence[_Rule]) -> Object:
    taints = [
        dict(taint)
        for _, selector, taint in rules
        if selector.get("device", device["name"]) == device["name"]
    ]
    return {**device, "taints": [*(device.get("taints") or ()), *taints]} if taints else device
