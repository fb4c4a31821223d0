"""Reading of JSON objects with errors that name the path.

Input comes from clusters, files and generators, and a wrong one must be told as
`$.spec.devices[2].attributes.x: expected a string, got 7`. The path is put together while an error
travels up, so that reading correct input costs nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_INT64_MAX = 2**63 - 1


class InputError(ValueError):
    """The error of a value that does not have the expected form.

    Attributes:
        message: what is wrong.
        path: where, as a JSON path that starts with `$`.
    """

    def __init__(self, message: str, *segments: str | int) -> None:
        super().__init__(message)
        self.message = message
        self._segments: list[str | int] = list(segments)

    def with_parent(self, *segments: str | int) -> InputError:
        """Return this error with its path begun further outside.

        ``segments``: the object keys or list indices that lead to where the path began until now.
        """
        self._segments[:0] = segments
        return self

    @property
    def path(self) -> str:
        return "$" + "".join(_segment(segment) for segment in self._segments)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def _segment(segment: str | int) -> str:
    if isinstance(segment, int):
        return f"[{segment}]"
    if _PLAIN.match(segment):
        return f".{segment}"
    return f'["{segment}"]'


def describe_value(value: object) -> str:
    """Return a short text for a value that has the wrong type."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def expect_object(value: object) -> Mapping[str, Any]:
    """Return the value as an object. Raises InputError: it is none."""
    # Asking for the class first, because asking for the abstract one is slow.
    if value.__class__ is not dict and not isinstance(value, Mapping):
        raise InputError(f"expected an object, got {describe_value(value)}")
    return value


def refuse_unknown_keys(source: Mapping[str, Any], field_names: Iterable[str]) -> None:
    """Raise InputError if an object has an unknown key; it names the first and the known ones."""
    names = list(field_names)
    for key in source:
        if key not in names:
            raise InputError(f"unknown field; known are {', '.join(sorted(names))}", str(key))


def read_string(source: Mapping[str, Any], key: str) -> str:
    """Return a string field; empty where it is absent or null."""
    return read_child(source, key, expect_text) or ""


def optional_string(source: Mapping[str, Any], key: str) -> str | None:
    """Return a string field, or None where it is absent or null (an empty string stays one)."""
    return read_child(source, key, expect_text)


def required_string(source: Mapping[str, Any], key: str) -> str:
    """Return a string field. Raises InputError: it is absent, null or empty."""
    return required_child(source, key, expect_nonempty_text)


def expect_nonempty_text(value: object) -> str:
    """Return the value as a string. Raises InputError: it is none, or empty."""
    text = expect_text(value)
    if not text:
        raise InputError("required value")
    return text


def expect_boolean(value: object) -> bool:
    """Return the value as a boolean. Raises InputError: it is none."""
    if not isinstance(value, bool):
        raise InputError(f"expected true or false, got {describe_value(value)}")
    return value


def read_boolean(source: Mapping[str, Any], key: str) -> bool:
    """Return a boolean field; false where it is absent or null."""
    return read_child(source, key, expect_boolean) or False


def expect_int64(value: object) -> int:
    """Return the value as a 64-bit integer. Raises InputError: it is none, or too large."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"expected an integer, got {describe_value(value)}")
    if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        raise InputError(f"{value} does not fit into 64 bits")
    return value


def read_integer(source: Mapping[str, Any], key: str) -> int:
    """Return a 64-bit integer field; 0 where it is absent or null."""
    return read_child(source, key, expect_int64) or 0


def read_child(source: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> T | None:
    """Return a field read by `parse`, or None where it is absent or null."""
    value = source.get(key)
    if value is None:
        return None
    try:
        return parse(value)
    except InputError as error:
        raise error.with_parent(key) from None


def required_child(source: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> T:
    """Return a field read by `parse`. Raises InputError: it is absent or null."""
    value = source.get(key)
    if value is None:
        raise InputError("required value", key)
    try:
        return parse(value)
    except InputError as error:
        raise error.with_parent(key) from None


def list_of(parse: Callable[[Any], T]) -> Callable[[object], tuple[T, ...]]:
    """Return a reader of lists whose items are read by `parse`."""

    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, (list, tuple)):
            raise InputError(f"expected a list, got {describe_value(value)}")
        return tuple(read_all(value, parse))

    return read


def map_of(parse: Callable[[Any], T]) -> Callable[[object], dict[str, T]]:
    """Return a reader of objects (name -> value, in input order); `parse` reads the values."""

    def read(value: object) -> dict[str, T]:
        item_by_name: dict[str, T] = {}
        for name, item in expect_object(value).items():
            if not isinstance(name, str):
                raise InputError(f"expected names, got {describe_value(name)}")
            try:
                item_by_name[name] = parse(item)
            except InputError as error:
                raise error.with_parent(name) from None
        return item_by_name

    return read


def read_items(source: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> tuple[T, ...]:
    """Return a list field whose items are read by `parse`; absent or null gives no items."""
    return read_child(source, key, list_of(parse)) or ()


def read_entries(source: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> dict[str, T]:
    """Return an object field whose values are read by `parse`; absent or null gives no entries."""
    return read_child(source, key, map_of(parse)) or {}


def expect_text(value: object) -> str:
    """Return the value as a string. Raises InputError: it is none."""
    if not isinstance(value, str):
        raise InputError(f"expected a string, got {describe_value(value)}")
    return value


def read_all(values: Iterable[object], parse: Callable[[Any], T], *path: str) -> list[T]:
    """Return the values, each read by `parse`.

    Raises InputError: a value has not the form of its kind; its path starts with `path` and its
    index.
    """
    values_read: list[T] = []
    try:
        for value in values:
            values_read.append(parse(value))  # noqa: PERF401 - an error tells how many there are
    except InputError as error:
        raise error.with_parent(*path, len(values_read)) from None
    return values_read
