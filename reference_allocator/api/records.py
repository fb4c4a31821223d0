"""Reading of API objects into frozen dataclasses, by the types of their fields.

A field ``node_name: str | None`` is read from ``nodeName``. Where that says too little, the type is
``Annotated`` with an `At`: another path, a value that is required, a reader of its own. Absent and
null are the same: the zero value of the Go type, or None for a type that allows it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Self, TypeVar

from reference_allocator.api import reading
from reference_allocator.api.quantity import Quantity, QuantityError, parse_quantity

T = TypeVar("T")
_Reader = Callable[[Any], Any]


class At(NamedTuple):
    """The place of a field in its object, and how it is read.

    Attributes:
        path: its keys, joined by dots; "." is the object itself; empty for the field's name.
        required: whether InputError ("required value") is raised where the field is absent, null or
            an empty string.
        parse: reads the value; by default the field's type says how.
    """

    path: str = ""
    required: bool = False
    parse: _Reader | None = None


class Record:
    """An API object that is read by the types of its fields."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, value: object) -> Self:
        """Read the object, or return one that was read; fields that are not known are ignored.

        Raises InputError: the object has not the form of its kind; names the path.
        """
        if value.__class__ is not dict:
            read = value.record if isinstance(value, ReadObject) else value
            if isinstance(read, cls):
                return read
        source = reading.expect_object(value)
        field_values: list[Any] = []
        for key, parse, default, required in _plan_fields(cls):  # type: ignore[arg-type]
            item = source.get(key) if key else source
            if item is not None:
                try:
                    field_values.append(parse(item))
                except reading.InputError as error:
                    raise (error.with_parent(key) if key else error) from None
            elif required:
                raise reading.InputError("required value", *required)
            else:
                field_values.append(default)
        return cls(*field_values)


_SHARED: Final[ContextVar[dict[int, Any] | None]] = ContextVar("_SHARED", default=None)
_MAX_SHARED: Final = 8192


@contextmanager
def sharing_parts() -> Iterator[None]:
    """Read parts that several objects have in common once (`read_shared`).

    A decoder may make one object of equal ones. The objects that are read have to stay until the
    end: parts are known by their identity.
    """
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def read_shared(parse: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a reader of parts that may be the same in many objects."""

    def read(value: object) -> T:
        known = _SHARED.get()
        if known is None:
            return parse(value)
        part: T | None = known.get(id(value))
        if part is None:
            part = parse(value)
            if len(known) >= _MAX_SHARED:
                known.clear()  # what is frequent comes again
            known[id(value)] = part
        return part

    return read


class ReadObject(dict[str, Any]):
    """An object that keeps what was read from it, so that each of its readers need not read it.

    It is not changed; a copy (``{**obj}``) is an object as any other.
    """

    __slots__ = ("record",)

    def __init__(self, obj: Mapping[str, Any], record: Record) -> None:
        super().__init__(obj)
        self.record = record


def read_quantity(value: object) -> Quantity:
    """Read a resource.Quantity from a JSON string or number.

    Raises InputError: the value is neither, or its text is no quantity.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise reading.InputError(f"expected a quantity, got {reading.describe_value(value)}")
    text = str(value).strip()
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise reading.InputError(
            f"{reading.describe_value(text)} is not a quantity: {error}"
        ) from None


_SCALARS: Final[Mapping[Any, tuple[_Reader, Any]]] = {
    str: (reading.expect_text, ""),
    bool: (reading.expect_boolean, False),
    int: (reading.expect_int64, 0),
    Quantity: (read_quantity, None),
}


def _reader_of_type(kind: Any) -> tuple[_Reader, Any]:
    """Return the reader of a type, and the type's value where the field is absent."""
    if kind in _SCALARS:
        return _SCALARS[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (UnionType, typing.Union):
        return _reader_of_type(args[0])[0], None
    if origin is tuple:
        return reading.list_of(_reader_of_type(args[0])[0]), ()
    if origin is frozenset:
        read = reading.list_of(_reader_of_type(args[0])[0])
        return lambda value: frozenset(read(value)), frozenset()
    if origin is not None:
        return (
            reading.expect_object if args[1] is Any else reading.map_of(_reader_of_type(args[1])[0])
        ), {}
    return getattr(kind, "from_dict", reading.expect_object), None


_Field = tuple[str, _Reader, Any, Sequence[str]]
"""Key (empty for the object itself), reader, value where absent, path if it is required."""


@cache
def _plan_fields(cls: Any) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple(_plan_field(field.name, hints[field.name]) for field in dataclasses.fields(cls))


def _plan_field(name: str, kind: Any) -> _Field:
    at = At()
    if typing.get_origin(kind) is Annotated:
        kind, at = typing.get_args(kind)
    parse, default = _reader_of_type(kind)
    if at.parse is not None:
        parse = at.parse
    elif at.required and kind is str:
        parse = reading.expect_nonempty_text
    if at.path == ".":
        return "", parse, None, ()
    head, *tail = name.split("_")
    path = (at.path or head + "".join(word.title() for word in tail)).split(".")
    for index in range(len(path) - 1, 0, -1):
        parse = _read_inside(path[index], parse, default, path[index:] if at.required else ())
    return path[0], parse, default, path if at.required else ()


def _read_inside(key: str, parse: _Reader, default: Any, required: Sequence[str]) -> _Reader:
    def read(value: Any) -> Any:
        item = (value if value.__class__ is dict else reading.expect_object(value)).get(key)
        try:
            field_value = None if item is None else parse(item)
        except reading.InputError as error:
            raise error.with_parent(key) from None
        if field_value is None and required:
            raise reading.InputError("required value", *required)
        return default if field_value is None else field_value

    return read
