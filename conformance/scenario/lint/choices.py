"""Values of which the API knows only a few: a misspelt one is refused, or never matches.

Only a value that is like a known one is complained about, because a newer API may know more.
Source: staging/src/k8s.io/api, core/v1, batch/v1 and resource/v1 of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from conformance.scenario.near import nearest
from conformance.scenario.yamlfile import PathTuple, Problem, inside
from reference_allocator.api import schema

_RESTART: Final = ("Always", "Never", "OnFailure")
_NODE_EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_DEVICE_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")

CHOICES: Final = {
    "Container.imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "Container.restartPolicy": _RESTART,
    "DeviceTaint.effect": _DEVICE_EFFECTS,
    "DeviceToleration.effect": _DEVICE_EFFECTS,
    "DeviceToleration.operator": ("Equal", "Exists"),
    "JobSpec.completionMode": ("Indexed", "NonIndexed"),
    "LabelSelectorRequirement.operator": ("DoesNotExist", "Exists", "In", "NotIn"),
    "NodeSelectorRequirement.operator": ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"),
    "PodSpec.restartPolicy": _RESTART,
    "Taint.effect": _NODE_EFFECTS,
    "Toleration.effect": _NODE_EFFECTS,
    "Toleration.operator": ("Equal", "Exists", "Gt", "Lt"),
}
"""Type and field -> its values."""


def misspelt(shape: str, value: Any, path: PathTuple) -> Iterator[Problem]:
    """Values in an object that are like one of those that their field takes.

    ``shape`` is the object's type in the table of fields; what does not fit it is passed over.
    """
    for key, item in inside(value):
        known = CHOICES.get(f"{shape.rpartition('.')[2]}.{key}", ())
        if isinstance(item, str) and item not in known:
            near = nearest(item, known)
            if near is not None:
                text = f"{item!r} must be one of {', '.join(known)}; did you mean {near}?"
                yield Problem((*path, key), text)
        yield from misspelt(_shape_inside(shape, key), item, (*path, key))


def _shape_inside(shape: str, key: str | int) -> str:
    """The shape of an element, or of a field."""
    for of_elements in (schema.LIST, schema.MAP):
        if shape.startswith(of_elements):
            return shape.removeprefix(of_elements)
    return schema.types().get(shape, {}).get(str(key), "any")
