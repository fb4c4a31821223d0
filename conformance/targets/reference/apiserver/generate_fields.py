"""Writes conformance/fields/fields.json: each kind's known fields, from the Kubernetes client.

The client's models are generated from the API server's own OpenAPI document, so they are exact;
importing them takes a second, so only the part that the reference serves is kept as data. Run
``python -m conformance.targets.reference.apiserver.generate_fields`` after an update of the client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from conformance.fields import FIELDS
from conformance.targets.reference.apiserver.resources import KINDS

_GENERIC = re.compile(r"(?:List|list)\[(?P<item>.+)\]|(?:Dict|dict)[\[(]str, (?P<value>.+)[\])]")
_SCALARS = frozenset({"str", "int", "bool", "float", "object", "datetime", "bytes"})

# The client's names where one version has two kinds of the same name.
_RENAMED = {"V1Event": "CoreV1Event", "V1ResourceClaim": "ResourceV1ResourceClaim"}

# Where the client says "str", but the API takes a number as well: quantities.
_QUANTITIES = frozenset(
    {
        "V1ResourceRequirements.limits",
        "V1ResourceRequirements.requests",
        "V1VolumeResourceRequirements.limits",
        "V1VolumeResourceRequirements.requests",
        "V1PodSpec.overhead",
        "V1NodeStatus.allocatable",
        "V1NodeStatus.capacity",
        "V1PodStatus.allocatedResources",
        "V1ContainerStatus.allocatedResources",
        "V1EmptyDirVolumeSource.sizeLimit",
        "V1ResourceFieldSelector.divisor",
    }
)
_QUANTITY_TYPES = re.compile(
    r"V1(?:beta[12])?(?:Counter|DeviceCapacity|CapacityRequirements|CapacityRequestPolicy"
    r"|CapacityRequestPolicyRange"
    r"|NodeAllocatable(?:Mapping|Overhead|MappedResources|OverheadResources))\."
)


def generate() -> dict[str, Any]:
    """``{"roots": apiVersion/kind -> type, "types": type -> {field -> [shape, type]}}``."""
    from kubernetes.client import models

    roots: dict[str, str] = {}
    types: dict[str, dict[str, str]] = {}
    for kind in KINDS.values():
        for version, api_version in zip(kind.versions, kind.api_versions, strict=True):
            root = f"{version[0].upper()}{version[1:]}{kind.name}"
            root = _RENAMED.get(root, root)
            roots[f"{api_version}/{kind.name}"] = root
            _collect(models, root, types)
    return {"roots": roots, "types": dict(sorted(types.items()))}


def _collect(models: Any, name: str, types: dict[str, dict[str, str]]) -> None:
    if name in types:
        return
    model = getattr(models, name)
    attributes: Mapping[str, str] = model.attribute_map
    fields = {}
    needed = []
    for attribute, type_name in model.openapi_types.items():
        field = attributes[attribute]
        shape = _shape(f"{name}.{field}", type_name)
        fields[field] = shape
        leaf = shape.rstrip("]").split("[")[-1]
        if leaf not in _SCALARS and leaf != "quantity":
            needed.append(leaf)
    types[name] = dict(sorted(fields.items()))
    for leaf in needed:
        _collect(models, leaf, types)


def _shape(path: str, type_name: str) -> str:
    """``str``, ``list[V1Device]``, ``map[quantity]`` and the like."""
    match = _GENERIC.fullmatch(type_name)
    if match is None:
        quantity = type_name == "str" and (path in _QUANTITIES or _QUANTITY_TYPES.match(path))
        return "quantity" if quantity and _is_quantity(path) else type_name
    if match["item"] is not None:
        return f"list[{_shape(path, match['item'])}]"
    return f"map[{_shape(path, match['value'])}]"


def _is_quantity(path: str) -> bool:
    return path.rsplit(".", 1)[1] not in {"capacityKey", "name"}


def main() -> None:
    """Write the file."""
    text = json.dumps(generate(), separators=(",", ":"), sort_keys=True)
    FIELDS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
