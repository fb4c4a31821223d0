"""Which fields Kubernetes objects have, and of which types: the table, and a walk along it.

The reference target refuses unknown fields with it, as an API server asked with
``fieldValidation=Strict`` does; scenario files are checked with it before anything runs. The table
is generated from the Kubernetes client (`conformance.targets.reference.apiserver.generate_fields`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from reference_allocator.api.quantity import QuantityError, parse_quantity

FIELDS: Final = Path(__file__).with_name("fields.json")

FieldPath = tuple[str | int, ...]

PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,),
    "datetime": (str,),
    "int": (int,),
    "bool": (bool,),
    "quantity": (str, int, float),
}
"""Scalar shape of the table -> the Python types of its decoded JSON."""


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that its type does not have.

    Attributes:
        path: of the field.
        owner: the type, a key of the table's ``types``.
    """

    path: FieldPath
    owner: str


@dataclass(frozen=True, slots=True)
class WrongType:
    """A value of another type than its field's.

    Attributes:
        path: of the value.
        owner: the type that has the field.
        shape: what the field takes: a type, ``list[...]``, ``map[...]`` or a scalar.
        value: what was found.
        why: what is wrong in a text that has a form of its own (a quantity), empty otherwise.
    """

    path: FieldPath
    owner: str
    shape: str
    value: Any
    why: str = ""


@cache
def roots() -> Mapping[str, str]:
    """``apiVersion/kind`` -> the name of its type."""
    found: dict[str, str] = _document()["roots"]
    return found


@cache
def root_of(kind: str, api_version: str | None = None) -> str | None:
    """The type of a kind in a version, by default the stable one; None for one not in the table."""
    version = api_version or stable_version(kind)
    return roots().get(f"{version}/{kind}")


@cache
def stable_version(kind: str) -> str | None:
    """The stable ``apiVersion``, failing that any; None for a kind that is not in the table."""
    found = [root.rpartition("/")[0] for root in roots() if root.rpartition("/")[2] == kind]
    stable = [version for version in found if version.rpartition("/")[2] == "v1"]
    return next(iter(stable or found), None)


@cache
def types() -> Mapping[str, Mapping[str, str]]:
    """Type -> its fields, each with its shape."""
    found: dict[str, dict[str, str]] = _document()["types"]
    return found


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(FIELDS.read_text(encoding="utf-8"))
    return document


def mistakes(
    shape: str, value: Any, path: FieldPath = (), owner: str = ""
) -> Iterator[UnknownField | WrongType]:
    """Everything in a value that does not fit its shape, in the order of the value.

    Args:
        shape: a type of the table, ``list[...]``, ``map[...]``, ``object`` (anything) or a scalar.
        value: decoded JSON; null fits everywhere, because it is the same as absent.
        path: where the value was found.
        owner: the type whose field it is.
    """
    if value is None or shape == "object":
        return
    owner = owner or shape
    if shape.startswith("list["):
        if not isinstance(value, list):
            yield WrongType(path, owner, shape, value)
            return
        for index, item in enumerate(value):
            yield from mistakes(shape[5:-1], item, (*path, index), owner)
    elif shape.startswith("map["):
        if not isinstance(value, dict):
            yield WrongType(path, owner, shape, value)
            return
        for key, item in value.items():
            yield from mistakes(shape[4:-1], item, (*path, key), owner)
    elif shape in types():
        if not isinstance(value, dict):
            yield WrongType(path, owner, shape, value)
            return
        fields = types()[shape]
        for key, item in value.items():
            if key not in fields:
                yield UnknownField((*path, key), shape)
            else:
                yield from mistakes(fields[key], item, (*path, key), shape)
    else:
        yield from _scalar(shape, value, path, owner)


def _scalar(shape: str, value: Any, path: FieldPath, owner: str) -> Iterator[WrongType]:
    is_bool = isinstance(value, bool)
    if not isinstance(value, PYTHON_TYPES[shape]) or (is_bool and shape != "bool"):
        yield WrongType(path, owner, shape, value)
    elif shape == "quantity":
        try:
            parse_quantity(str(value))
        except QuantityError as error:
            yield WrongType(path, owner, shape, value, str(error))
