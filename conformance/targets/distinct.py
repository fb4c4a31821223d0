"""What tells one device of a driver from all its others, so that a scenario can ask for just that.

Devices of a node are mostly alike, and of those a scheduler that ignores a selector takes a right
one, too. An attribute of which each device has a value of its own, a uuid say, makes it visible.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

Object = Mapping[str, Any]
Device = tuple[str, str]
"""Pool and name."""

_KINDS: Final = ("int", "string")
"""Of DeviceAttribute (resource.k8s.io/v1): those with a literal in CEL that is never ambiguous."""


def selector_of(slices: Iterable[Object], driver: str, device: Device) -> str:
    """CEL that is true for this device alone; "" where no attribute tells it from the others.

    Args:
        slices: of the whole cluster, in resource.k8s.io/v1.
        driver: the device's.
        device: it must be published.
    """
    others = _attributes(slices, driver)
    for name, value in sorted(others.pop(device).items()):
        [(kind, own)] = value.items()
        # A device without the attribute, or with another kind of it, would be an error in CEL.
        values = [attributes.get(name, {}).get(kind) for attributes in others.values()]
        if kind in _KINDS and None not in values and own not in values:
            domain, _, plain = name.rpartition("/")
            literal = json.dumps(own, ensure_ascii=False)
            return f'device.attributes["{domain or driver}"]["{plain}"] == {literal}'
    return ""


def _attributes(slices: Iterable[Object], driver: str) -> dict[Device, Object]:
    """Device -> its attributes in the newest generation of its pool that has it."""
    specs = [item["spec"] for item in slices if item["spec"]["driver"] == driver]
    return {
        (spec["pool"]["name"], device["name"]): device.get("attributes") or {}
        for spec in sorted(specs, key=lambda spec: int(spec["pool"].get("generation", 0)))
        for device in spec.get("devices") or ()
    }
