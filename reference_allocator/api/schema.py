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
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from reference_allocator.api.quantity import QuantityError, as_quantity

LIST: Final = "[]"
MAP: Final = "map[string]"

CLUSTER_SCOPED: Final = frozenset(
    """
        DeviceClass DeviceTaintRule Namespace Node PriorityClass ResourcePoolStatusRequest
        ResourceSlice ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
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
    """Return everything in a value that does not fit its shape, in the order of the value.

    Paths are put together while a mistake travels up, so that a right value costs nothing for them.

    Args:
        shape: what the value should be.
        value: decoded JSON; null fits everywhere, because it is the same as absent.
        owner: the type whose field it is.
    """
    return iter(_finder_of(shape)(value, owner or shape) if value is not None else ())


_Finder = Callable[[Any, str], Sequence[Mistake]]
"""From a value that is not null, and the type whose field it is, to what is wrong in it."""

_NO_MISTAKES: Final[Sequence[Mistake]] = ()


@cache
def _finder_of(shape: str) -> _Finder:
    if shape.startswith((LIST, MAP)):
        return _collection_finder_of(shape)
    fields = types().get(shape)
    if fields is None:
        return _scalar_finder_of(shape)
    finders: dict[str, _Finder] = {}  # made when used: types may hold themselves

    def find_in_struct(value: Any, owner: str) -> Sequence[Mistake]:
        if not isinstance(value, dict):
            return [WrongType((), owner, shape, value)]
        mistakes: list[Mistake] = []
        for key, item in value.items():
            find = finders.get(key)
            if find is None:
                if key not in fields:
                    mistakes.append(UnknownField((key,), shape))
                    continue
                find = finders[key] = _finder_of(fields[key])
            if item is None or (find is _find_in_text and item.__class__ is str):
                continue  # most values are texts
            if found := find(item, shape):
                mistakes += (mistake.with_parent(key) for mistake in found)
        return mistakes

    return find_in_struct


def _collection_finder_of(shape: str) -> _Finder:
    kind, inner = (
        (list, shape[len(LIST) :]) if shape.startswith(LIST) else (dict, shape[len(MAP) :])
    )

    def find_in_collection(value: Any, owner: str) -> Sequence[Mistake]:
        if value.__class__ is not kind and not isinstance(value, kind):
            return [WrongType((), owner, shape, value)]
        find, mistakes = _finder_of(inner), list[Mistake]()
        for place, item in enumerate(value) if isinstance(value, list) else value.items():
            if item is not None and (found := find(item, owner)):
                mistakes += (mistake.with_parent(place) for mistake in found)
        return mistakes

    return find_in_collection


def _scalar_finder_of(shape: str) -> _Finder:
    def find_in_scalar(value: Any, owner: str) -> Sequence[Mistake]:
        why = _scalar_problem(shape, value)
        return _NO_MISTAKES if why is None else [WrongType((), owner, shape, value, why)]

    return _find_in_text if shape == "string" else find_in_scalar


def _find_in_text(value: Any, owner: str) -> Sequence[Mistake]:
    return _NO_MISTAKES if isinstance(value, str) else [WrongType((), owner, "string", value)]


Part = tuple[Path, str, Any]
"""Where a part of a value is, its type and the part."""


def list_parts(shape: str, value: Any, names: frozenset[str], path: Path = ()) -> list[Part]:
    """Return the parts of a value that are of certain types, from outside in.

    Only where such can be is looked.

    Args:
        shape: the value's shape; what does not fit it is passed over.
        names: types without their packages and versions, for example ``PodSpec``.
        path: where the value is.
    """
    parts: list[Part] = []
    holders = _list_holders(names)
    if shape in holders:
        _add_parts(shape, value, holders, path, parts)
    return parts


class _Holder(NamedTuple):
    """A shape in which types can be that are looked for: whether it is one, and where to look."""

    is_wanted: bool
    fields: dict[str, str]


def _add_parts(
    shape: str, value: Any, holders: Mapping[str, _Holder], path: Path, parts: list[Part]
) -> None:
    if isinstance(value, list):
        if shape.startswith(LIST):
            for index, item in enumerate(value):
                _add_parts(shape[len(LIST) :], item, holders, (*path, index), parts)
    elif isinstance(value, dict):
        if shape.startswith(MAP):
            for key, item in value.items():
                _add_parts(shape[len(MAP) :], item, holders, (*path, key), parts)
        elif not shape.startswith(LIST):
            holder = holders[shape]
            if holder.is_wanted:
                parts.append((path, shape, value))
            for key, inner in holder.fields.items():
                if key in value:
                    _add_parts(inner, value[key], holders, (*path, key), parts)


def _name_type(shape: str) -> str:
    return shape.rpartition(".")[2]


@cache
def _list_holders(names: frozenset[str]) -> Mapping[str, _Holder]:
    """Return the shapes in which types of these names can be."""
    users: dict[str, list[tuple[str, str]]] = defaultdict(list)  # shape -> (type, field)
    for name, fields in types().items():
        for field, shape in fields.items():
            users[_strip_collections(shape)].append((name, field))
    holders: dict[str, _Holder] = {}

    def add(shape: str) -> _Holder:
        return holders.setdefault(shape, _Holder(_name_type(shape) in names, {}))

    waiting = [name for name in types() if _name_type(name) in names]
    while waiting:
        shape = waiting.pop()
        add(shape)
        for user, field in users[shape]:
            if user not in holders:
                waiting.append(user)
            inner = add(user).fields[field] = types()[user][field]
            while inner != shape:
                add(inner)
                inner = _strip_collection(inner)
    return holders


def _strip_collection(shape: str) -> str:
    """Return the shape of what a list or an object of that shape holds; others as they are."""
    return shape[len(LIST) :] if shape.startswith(LIST) else shape.removeprefix(MAP)


def _strip_collections(shape: str) -> str:
    while (inner := _strip_collection(shape)) != shape:
        shape = inner
    return shape


def _scalar_problem(shape: str, value: Any) -> str | None:
    """Return why a value is not of a scalar shape: empty for another JSON type, None if it is."""
    is_text, is_bool = isinstance(value, str), isinstance(value, bool)
    match shape:
        case "any":
            return _depth_problem(value)
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
