"""Strict decoding: which fields a kind has, and the API server's answer to any other.

An API server asked with ``fieldValidation=Strict`` refuses unknown fields. That is how an outdated
manifest is found out (a pod's ``resourceClaims[].source``), so the reference needs the whole
list of fields, not just those that it acts upon.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from conformance.targets.base import ApiError, Obj
from conformance.targets.reference.kinds import Kind
from conformance.targets.reference.store import clone
from reference_allocator.quantity import QuantityError, parse_quantity

_GO_KINDS = {str: "string", int: "number", float: "number", bool: "bool", list: "array"}
_GO_TYPES = {"str": "string", "int": "int64", "datetime": "string", "quantity": "string"}
_TYPE = re.compile(r"(?:Core|Resource)?(V1(?:(?:alpha|beta)\d)?)(.+)")
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "datetime": (str,),
    "int": (int,),
    "bool": (bool,),
    "quantity": (str, int, float),
}


@cache
def _document() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("fields.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def decode(kind: Kind, obj: Obj, *, strict: bool = True) -> Obj:
    """Refuse values of a wrong type, then unknown fields, as the API server does.

    Args:
        kind: its kind.
        obj: as the client sends it; not changed.
        strict: False drops unknown fields (a fault for tests).

    Returns:
        A copy without nulls: a field that is null is absent, an element that is null is empty.

    Raises:
        ApiError: 400 BadRequest, with the path of every unknown field.
    """
    document = _document()
    root = document["roots"][f"{obj['apiVersion']}/{kind.name}"]
    try:
        unknown = list(_unknown(document["types"], root, obj, "", "", root))
    except _TypeMismatchError as error:
        raise _refusal(kind, obj, str(error)) from None
    if unknown and strict:
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise _refusal(kind, obj, f"strict decoding error: {listed}")
    decoded: Obj = _known(document["types"], root, obj)
    return decoded


def _unknown(
    types: Any, shape: str, value: Any, path: str, go_path: str, owner: str
) -> Iterator[str]:
    """Paths of unknown fields; ``go_path`` is the path as Go's decoder has it, without indices."""
    if value is None or shape == "object":
        return
    if shape.startswith("list["):
        _expect(list, value, shape, go_path, owner)
        for index, item in enumerate(value):
            yield from _unknown(types, shape[5:-1], item, f"{path}[{index}]", go_path, owner)
    elif shape.startswith("map["):
        _expect(dict, value, shape, go_path, owner)
        for key, item in value.items():
            yield from _unknown(types, shape[4:-1], item, f"{path}.{key}", go_path, owner)
    elif shape in types:
        _expect(dict, value, shape, go_path, owner)
        for key, item in value.items():
            inner, go_inner = f"{path}.{key}".lstrip("."), f"{go_path}.{key}".lstrip(".")
            if key not in types[shape]:
                yield inner
            else:
                yield from _unknown(types, types[shape][key], item, inner, go_inner, shape)
    else:
        _expect(_PYTHON_TYPES[shape], value, shape, go_path, owner)
        if shape == "quantity":
            try:
                parse_quantity(str(value))
            except QuantityError as error:
                raise _TypeMismatchError(str(error)) from None


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


class _TypeMismatchError(Exception):
    """What Go's JSON decoder says of a value of a wrong type."""


def _expect(
    expected: type | tuple[type, ...], value: Any, shape: str, go_path: str, owner: str
) -> None:
    is_bool = isinstance(value, bool)
    if isinstance(value, expected) and (not is_bool or shape in {"bool", "object"}):
        return
    found = "bool" if is_bool else _GO_KINDS.get(type(value), "object")
    struct = _go_type(owner).rpartition(".")[2]
    raise _TypeMismatchError(
        f"json: cannot unmarshal {found} into Go struct field {struct}.{go_path} of type "
        f"{_go_type(shape)}"
    )


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
