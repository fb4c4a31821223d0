"""Reading of JSON objects with errors that name the path.

Input comes from clusters, files and generators, and a wrong one must be told as
`$.spec.devices[2].attributes.x: expected a string, got 7`. The path is put together while an error
travels up, so that reading correct input costs nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_INT64_MAX = 2**63 - 1


class InputError(ValueError):
    """A value that does not have the expected form.

    Attributes:
        message: what is wrong.
        path: where, as a JSON path that starts with `$`.
    """

    def __init__(self, message: str, *segments: str | int) -> None:
        super().__init__(message)
        self.message = message
        self._segments: list[str | int] = list(segments)

    def under(self, *segments: str | int) -> InputError:
        """The same error, seen from further outside: segments are object keys or list indices."""
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


def describe(value: object) -> str:
    """A short text for a value that has the wrong type."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def mapping(value: object) -> Mapping[str, Any]:
    """The value as an object. Raises InputError: it is none."""
    # Asking for the class first, because asking for the abstract one is slow.
    if value.__class__ is not dict and not isinstance(value, Mapping):
        raise InputError(f"expected an object, got {describe(value)}")
    return cast("Mapping[str, Any]", value)


def only_known(source: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuses keys that are not known.

    Raises InputError: names the first unknown key and the known ones.
    """
    names = list(known)
    for key in source:
        if key not in names:
            raise InputError(f"unknown field; known are {', '.join(sorted(names))}", str(key))


def string(source: Mapping[str, Any], key: str) -> str:
    """A string field; empty where it is absent or null."""
    return child(source, key, text_item) or ""


def optional_string(source: Mapping[str, Any], key: str) -> str | None:
    """A string field, or None where it is absent or null (an empty string stays one)."""
    return child(source, key, text_item)


def required_string(source: Mapping[str, Any], key: str) -> str:
    """A string field that must be there and not be empty."""
    return required_child(source, key, filled)


def filled(value: object) -> str:
    """A string that is not empty."""
    if not text_item(value):
        raise InputError("required value")
    return text_item(value)


def truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"expected true or false, got {describe(value)}")
    return value


def boolean(source: Mapping[str, Any], key: str) -> bool:
    """A boolean field; false where it is absent or null."""
    return child(source, key, truth) or False


def int64(value: object) -> int:
    """The value as a 64-bit integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"expected an integer, got {describe(value)}")
    if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        raise InputError(f"{value} does not fit into 64 bits")
    return value


def integer(source: Mapping[str, Any], key: str) -> int:
    """A 64-bit integer field; 0 where it is absent or null."""
    return child(source, key, int64) or 0


def child(source: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> T | None:
    """A field read by `parse`, or None where it is absent or null."""
    value = source.get(key)
    if value is None:
        return None
    try:
        return parse(value)
    except InputError as error:
        raise error.under(key) from None


def required_child(source: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> T:
    """A field read by `parse` that must be there."""
    if source.get(key) is None:
        raise InputError("required value", key)
    return cast("T", child(source, key, parse))


def list_of(parse: Callable[[Any], T]) -> Callable[[object], tuple[T, ...]]:
    """A reader of lists whose items are read by `parse`."""

    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, (list, tuple)):
            raise InputError(f"expected a list, got {describe(value)}")
        return tuple(read_all(value, parse))

    return read


def map_of(parse: Callable[[Any], T]) -> Callable[[object], dict[str, T]]:
    """A reader of objects whose values are read by `parse`: name -> value, in input order."""

    def read(value: object) -> dict[str, T]:
        found: dict[str, T] = {}
        for name, item in mapping(value).items():
            if not isinstance(name, str):
                raise InputError(f"expected names, got {describe(name)}")
            try:
                found[name] = parse(item)
            except InputError as error:
                raise error.under(name) from None
        return found

    return read


def items(source: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> tuple[T, ...]:
    """A list field whose items are read by `parse`; absent or null gives no items."""
    return child(source, key, list_of(parse)) or ()


def entries(source: Mapping[str, Any], key: str, parse: Callable[[Any], T]) -> dict[str, T]:
    """An object field whose values are read by `parse`; absent or null gives no entries."""
    return child(source, key, map_of(parse)) or {}


def text_item(value: object) -> str:
    """A list item or map value that must be a string."""
    if not isinstance(value, str):
        raise InputError(f"expected a string, got {describe(value)}")
    return value


def read_all(values: Iterable[object], parse: Callable[[Any], T], *path: str) -> list[T]:
    """Values read by `parse`.

    Raises InputError: a value has not the form of its kind; its path starts with `path` and its
    index.
    """
    found: list[T] = []
    try:
        for value in values:
            found.append(parse(value))  # noqa: PERF401 - an error tells how many there are
    except InputError as error:
        raise error.under(*path, len(found)) from None
    return found
