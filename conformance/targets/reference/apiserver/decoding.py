"""Strict decoding: which fields a kind has, and the API server's answer to any other.

An API server asked with ``fieldValidation=Strict`` refuses unknown fields. That is how an outdated
manifest is found out (a pod's ``resourceClaims[].source``), so the reference needs the whole
list of fields, not just those that it acts upon.
"""

from __future__ import annotations

import re
from typing import Any

from conformance import fields
from conformance.fields import FieldPath, UnknownField, WrongType
from conformance.targets.base import ApiError, Obj
from conformance.targets.reference.apiserver.resources import Kind
from conformance.targets.reference.apiserver.store import clone

_GO_KINDS = {str: "string", int: "number", float: "number", bool: "bool", list: "array"}
_GO_TYPES = {"str": "string", "int": "int64", "datetime": "string", "quantity": "string"}
_TYPE = re.compile(r"(?:Core|Resource)?(V1(?:(?:alpha|beta)\d)?)(.+)")


def decode(kind: Kind, obj: Obj) -> Obj:
    """Refuse values of a wrong type, then unknown fields, as the API server does.

    Args:
        kind: its kind.
        obj: as the client sends it; not changed.

    Returns:
        A copy without nulls: a field that is null is absent, an element that is null is empty.

    Raises:
        ApiError: 400 BadRequest, with the path of every unknown field.
    """
    root = fields.roots()[f"{obj['apiVersion']}/{kind.name}"]
    unknown = []
    for mistake in fields.mistakes(root, obj):
        if isinstance(mistake, WrongType):
            raise _refusal(kind, obj, _mismatch(root, mistake))
        unknown.append(mistake)
    if unknown:
        listed = ", ".join(f'unknown field "{_path(item)}"' for item in unknown)
        raise _refusal(kind, obj, f"strict decoding error: {listed}")
    decoded: Obj = _known(fields.types(), root, obj)
    return decoded


def _path(unknown: UnknownField) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in unknown.path)
    return "".join(parts).lstrip(".")


def _known(types: Any, shape: str, value: Any) -> Any:
    """A copy of a value of the right type, as Go's decoder leaves it."""
    if shape == "object":
        return clone(value)
    if shape.startswith("list["):
        inner = shape[5:-1]
        return [_empty(types, inner) if v is None else _known(types, inner, v) for v in value]
    if shape.startswith("map["):
        items = ((key, shape[4:-1], item) for key, item in value.items())
    elif shape in types:
        fields = types[shape]
        items = ((key, fields[key], item) for key, item in value.items() if key in fields)
    else:
        return value
    return {key: _known(types, inner, item) for key, inner, item in items if item is not None}


def _empty(types: Any, shape: str) -> Any:
    """Go's zero value."""
    if shape in types or shape.startswith("map["):
        return {}
    if shape.startswith("list["):
        return []
    return {"int": 0, "bool": False, "str": ""}.get(shape)


def _mismatch(root: str, mistake: WrongType) -> str:
    """What Go's JSON decoder says of a value of a wrong type."""
    if mistake.why:
        return mistake.why
    value = mistake.value
    found = "bool" if isinstance(value, bool) else _GO_KINDS.get(type(value), "object")
    struct = _go_type(mistake.owner).rpartition(".")[2]
    return (
        f"json: cannot unmarshal {found} into Go struct field"
        f" {struct}.{_go_path(root, mistake.path)} of type {_go_type(mistake.shape)}"
    )


def _go_path(root: str, path: FieldPath) -> str:
    """The path as Go's decoder has it: without indices, and without the keys of maps."""
    shape, names = root, []
    for part in path:
        if shape.startswith("list["):
            shape = shape[5:-1]
        elif shape.startswith("map["):
            shape = shape[4:-1]
        else:
            names.append(str(part))
            shape = fields.types()[shape][str(part)]
    return ".".join(names)


def _go_type(shape: str) -> str:
    """``[]v1.DeviceRequest`` for ``list[V1DeviceRequest]``."""
    if shape.startswith("list["):
        return f"[]{_go_type(shape[5:-1])}"
    if shape.startswith("map["):
        return f"map[string]{_go_type(shape[4:-1])}"
    match = _TYPE.fullmatch(shape)
    return f"{match[1].lower()}.{match[2]}" if match else _GO_TYPES.get(shape, shape)


def _refusal(kind: Kind, obj: Obj, why: str) -> ApiError:
    version = obj["apiVersion"]
    return ApiError(
        400,
        "BadRequest",
        f'{kind.name} in version "{version.rsplit("/", 1)[-1]}" cannot be handled as a '
        f"{kind.name}: {why}",
    )
