"""Field selectors: by which fields objects of a kind can be listed.

Sources: ``toSelectableFields`` in pkg/registry/resource/resourceslice/strategy.go and
pkg/registry/core/pod/strategy.go; every kind has those of its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from conformance.targets.base import ApiError, Obj
from conformance.targets.reference.resources import Kind

_SELECTABLE: Final = {
    "Pod": ("spec.nodeName", "spec.schedulerName", "status.phase"),
    "ResourceSlice": ("spec.driver", "spec.nodeName", "spec.pool.name"),
}


def selects(kind: Kind, fields: Mapping[str, str], obj: Obj) -> bool:
    """Whether an object has these values in these fields.

    Raises:
        ApiError: 400, there is no selecting by one of them.
    """
    known = {"metadata.name", *_SELECTABLE.get(kind.name, ())}
    known |= {"metadata.namespace"} if kind.namespaced else set()
    for field in fields:
        if field not in known:
            text = f'field label not supported for {kind.name}: "{field}"'
            raise ApiError(400, "BadRequest", text)
    return all(_value(obj, field) == value for field, value in fields.items())


def _value(obj: Any, field: str) -> str:
    for part in field.split("."):
        obj = (obj or {}).get(part)
    return str(obj or "")
