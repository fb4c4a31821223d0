"""The fields and types of Kubernetes objects: the table, and a walk along it.

A field that is dropped silently (a typing error, a version that is too new) would give an answer to
another question than the one that was put. So problems for the allocator, scenarios, and requests
to the reference's API server are compared with the fields that there are, as strict decoding in Go
does. The table is generated from the Go types of one Kubernetes minor (`ci/upstream/fielddump`).

A *shape* is what a field takes: a type of the table (``resource/v1.DeviceRequest``), a scalar
(``string``, ``bool``, ``int32``, ``int64``, ``quantity``, ``time``, ``intorstring``), ``any``, or
one of these after ``[]`` (a list) or ``map[string]`` (an object).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from reference_allocator.api.quantity import QuantityError, as_quantity

LIST: Final = "[]"
MAP: Final = "map[string]"

CLUSTER_SCOPED: Final = frozenset(
    """
        DeviceClass DeviceTaintRule Namespace Node PriorityClass ResourceSlice
        ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
    """.split()
)
"""The kinds whose objects are in no namespace; no Go type says so."""

_TABLE: Final = "fields-1.37.json"
_INT_BITS: Final = {"int32": 32, "int64": 64}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z")
_MAX_DEPTH: Final = 128
"""The deepest nesting of a driver's parameters; to the allocator they are only data."""

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that its type does not have.

    Attributes:
        path: the field's path.
        owner: the type, a key of `types`.
    """

    path: Path
    owner: str

    def with_parent(self, key: str | int) -> UnknownField:
        """Return this mistake with a path that begins one level further outside."""
        return UnknownField((key, *self.path), self.owner)


@dataclass(frozen=True, slots=True)
class WrongType:
    """A value that does not fit the shape of its field.

    Attributes:
        path: the value's path.
        owner: the type that has the field.
        shape: what the field takes.
        value: the value that does not fit.
        why: what is wrong in a value of the right JSON type (a quantity, a time, an integer that is
            too large), empty otherwise.
    """

    path: Path
    owner: str
    shape: str
    value: Any
    why: str = ""

    def with_parent(self, key: str | int) -> WrongType:
        """Return this mistake with a path that begins one level further outside."""
        return WrongType((key, *self.path), self.owner, self.shape, self.value, self.why)


Mistake = UnknownField | WrongType


@cache
def roots() -> Mapping[str, str]:
    """Return ``apiVersion/kind`` -> its type, for example ``v1/Pod`` -> ``core/v1.Pod``."""
    type_of_root: dict[str, str] = _load_document()["roots"]
    return type_of_root


@cache
def types() -> Mapping[str, Mapping[str, str]]:
    """Return type -> its fields, each with its shape."""
    fields_of_type: dict[str, dict[str, str]] = _load_document()["types"]
    return fields_of_type


@cache
def root_of(kind: str, api_version: str | None = None) -> str | None:
    """Return the type of a kind in a version (default: the stable one); None for an unknown one."""
    return roots().get(f"{api_version or stable_version(kind)}/{kind}")


@cache
def stable_version(kind: str) -> str | None:
    """Return the stable ``apiVersion`` of a kind, failing that any; None for an unknown kind."""
    versions = [root.rpartition("/")[0] for root in roots() if root.rpartition("/")[2] == kind]
    stable = [version for version in versions if version.rpartition("/")[2] == "v1"]
    return next(iter(stable or versions), None)


@cache
def _load_document() -> dict[str, Any]:
    text = files("reference_allocator").joinpath("data", _TABLE).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def find_mistakes(shape: str, value: Any, owner: str = "") -> Iterator[Mistake]:
    """Yield everything in a value that does not fit its shape, in the order of the value.

    Paths are put together while a mistake travels up, so that a right value costs nothing for them.

    Args:
        shape: what the value should be.
        value: decoded JSON; null fits everywhere, because it is the same as absent.
        owner: the type whose field it is.
    """
    if value is None:
        return
    fields = types().get(shape)
    if fields is not None:
        yield from _struct_mistakes(shape, fields, value, owner)
    elif shape.startswith(LIST):
        if isinstance(value, list):
            inner = shape[len(LIST) :]
            for index, item in enumerate(value):
                for mistake in find_mistakes(inner, item, owner or shape):
                    yield mistake.with_parent(index)
        else:
            yield WrongType((), owner or shape, shape, value)
    elif shape.startswith(MAP):
        if isinstance(value, dict):
            inner = shape[len(MAP) :]
            for key, item in value.items():
                for mistake in find_mistakes(inner, item, owner or shape):
                    yield mistake.with_parent(key)
        else:
            yield WrongType((), owner or shape, shape, value)
    else:
        why = _scalar_problem(shape, value)
        if why is not None:
            yield WrongType((), owner or shape, shape, value, why)


def _struct_mistakes(
    shape: str, fields: Mapping[str, str], value: Any, owner: str
) -> Iterator[UnknownField | WrongType]:
    if not isinstance(value, dict):
        yield WrongType((), owner or shape, shape, value)
        return
    for key, item in value.items():
        if key not in fields:
            yield UnknownField((key,), shape)
        else:
            for mistake in find_mistakes(fields[key], item, shape):
                yield mistake.with_parent(key)


def _scalar_problem(shape: str, value: Any) -> str | None:
    """Return why a value is not of a scalar shape: empty for another JSON type, None if it is."""
    is_text, is_bool = isinstance(value, str), isinstance(value, bool)
    match shape:
        case "any":
            return _depth_problem(value)
        case "string":
            return None if is_text else ""
        case "bool":
            return None if is_bool else ""
        case "time":
            if not is_text:
                return ""
            return None if _TIME.match(value) else "write it like 2026-01-31T12:00:00Z"
        case "intorstring":
            return None if is_text or (isinstance(value, int) and not is_bool) else ""
        case "quantity":
            if is_bool or not isinstance(value, (str, int, float)):
                return ""
            return _quantity_problem(value)
    bits = _INT_BITS[shape]
    if is_bool or not isinstance(value, int):
        return ""
    return None if -(1 << bits - 1) <= value < 1 << bits - 1 else f"does not fit into {bits} bits"


def _quantity_problem(value: str | int | float) -> str | None:
    try:
        as_quantity(value)
    except QuantityError as error:
        return str(error)
    return None


def _depth_problem(value: Any) -> str | None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return None
    return f"nested more than {_MAX_DEPTH} levels deep"
