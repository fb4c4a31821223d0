"""Strict decoding: which fields a kind has, and the API server's answer to any other.

An API server asked with ``fieldValidation=Strict`` refuses unknown fields. That is how an outdated
manifest is found out (a pod's ``resourceClaims[].source``), so the reference needs the whole
list of fields, not just those that it acts upon.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kube.errors import ApiError
from kube.values import Obj
from kubesim.resources import Kind
from kubesim.store import clone
from reference_allocator.api import schema
from reference_allocator.api.quantity import as_quantity
from reference_allocator.api.schema import LIST, MAP, UnknownField, WrongType

_GO_KINDS = {str: "string", int: "number", float: "number", bool: "bool", list: "array"}
_GO_TYPES = {"time": "string", "quantity": "string"}
_ZEROS = {"int32": 0, "int64": 0, "bool": False, "string": ""}


def decode_object(kind: Kind, obj: Obj) -> Obj:
    """Refuse values of a wrong type, then unknown fields, as the API server does.

    ``obj``: as the client sends it; not changed.

    Returns:
        A copy without nulls: a field that is null is absent, an element that is null is empty.

    Raises ApiError: 400 BadRequest, with the path of every unknown field.
    """
    root = schema.roots()[f"{obj['apiVersion']}/{kind.name}"]
    unknown: list[UnknownField] = []
    for mistake in schema.find_mistakes(root, obj):
        if isinstance(mistake, WrongType):
            raise _new_bad_request(kind, obj, _explain_mismatch(root, mistake))
        unknown.append(mistake)
    if unknown:
        listed = ", ".join(f'unknown field "{_format_path(item)}"' for item in unknown)
        raise _new_bad_request(kind, obj, f"strict decoding error: {listed}")
    decoded: Obj = copy_decoded(root, obj)
    return decoded


def _format_path(unknown: UnknownField) -> str:
    segments = (
        f"[{segment}]" if isinstance(segment, int) else f".{segment}" for segment in unknown.path
    )
    return "".join(segments).lstrip(".")


def copy_decoded(shape: str, value: Any) -> Any:
    """Return a copy of a value of the right type, as Go's decoder leaves it."""
    items: Iterable[tuple[str, str, Any]]
    if shape == "any":
        return clone(value)
    if shape == "quantity":
        return str(as_quantity(value))  # a number is read back as a text
    if shape.startswith(LIST):
        inner = shape[len(LIST) :]
        return [_zero(inner) if item is None else copy_decoded(inner, item) for item in value]
    if shape.startswith(MAP):
        items = ((key, shape[len(MAP) :], item) for key, item in value.items())
    elif shape in schema.types():
        fields = schema.types()[shape]
        items = ((key, fields[key], item) for key, item in value.items())
    else:
        return value
    return {key: copy_decoded(inner, item) for key, inner, item in items if item is not None}


def _zero(shape: str) -> Any:
    if shape in schema.types() or shape.startswith(MAP):
        return {}
    return [] if shape.startswith(LIST) else _ZEROS.get(shape)


def _explain_mismatch(root: str, mistake: WrongType) -> str:
    """Return what Go's JSON decoder says of a value of a wrong type."""
    is_integer = mistake.shape.startswith("int")
    if mistake.shape == "time" and mistake.why:
        return f'parsing time "{mistake.value}" as "2006-01-02T15:04:05Z07:00": {mistake.why}'
    if mistake.why and not is_integer:
        return mistake.why
    value = mistake.value
    found_type = "bool" if isinstance(value, bool) else _GO_KINDS.get(type(value), "object")
    if is_integer and found_type == "number":
        found_type = f"number {value}"
    struct = _go_type(mistake.owner).rpartition(".")[2]
    return (
        f"json: cannot unmarshal {found_type} into Go struct field"
        f" {struct}.{_go_path(root, mistake.path)} of type {_go_type(mistake.shape)}"
    )


def _go_path(root: str, path: schema.Path) -> str:
    """Return the path as Go's decoder has it: without indices, and without the keys of maps."""
    shape, names = root, []
    for segment in path:
        if shape.startswith(LIST):
            shape = shape[len(LIST) :]
        elif shape.startswith(MAP):
            shape = shape[len(MAP) :]
        else:
            names.append(str(segment))
            shape = schema.types()[shape][str(segment)]
    return ".".join(names)


def _go_type(shape: str) -> str:
    """Return ``[]v1.DeviceRequest`` for ``[]resource/v1.DeviceRequest``."""
    for prefix in (LIST, MAP):
        if shape.startswith(prefix):
            return prefix + _go_type(shape[len(prefix) :])
    return _GO_TYPES.get(shape, shape.rpartition("/")[2])


def _new_bad_request(kind: Kind, obj: Obj, why: str) -> ApiError:
    version = obj["apiVersion"]
    return ApiError(
        400,
        "BadRequest",
        f'{kind.name} in version "{version.rsplit("/", 1)[-1]}" cannot be handled as a '
        f"{kind.name}: {why}",
    )
