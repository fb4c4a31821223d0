"""What generated code calls.

Each helper either gives the right value or raises anything at all: an exception makes the
interpreter evaluate the expression again, by the book.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reference_allocator.cel.runtime.maps import (
    KEY_CLASSES,
    MISSING,
    DomainMap,
    find,
    map_key,
    map_keys,
    unmap_key,
)
from reference_allocator.cel.runtime.values import Optional


class UndecidedError(Exception):
    """Generated code cannot tell; the interpreter has to."""


def truth(value: Any) -> bool:
    """The value, which must be a bool."""
    if value.__class__ is not bool:
        raise UndecidedError
    return bool(value)


def index(container: Any, key: Any) -> Any:
    """``container[key]``."""
    if container.__class__ is list:
        if key.__class__ is not int or key < 0:
            raise UndecidedError
        return container[key]
    if isinstance(container, dict) and key.__class__ in KEY_CLASSES:
        value = find(container, key)
        if value is MISSING:
            raise KeyError(key)
        return value
    raise UndecidedError


def select_optional(container: Any, key: Any) -> Optional:
    """``container[?key]`` and ``container.?key``, also of an optional container."""
    if container.__class__ is Optional:
        if not container.present:
            return Optional(present=False)
        container = container.value
    if isinstance(container, dict) and key.__class__ in KEY_CLASSES:
        value = find(container, key)
        return Optional(present=False) if value is MISSING else Optional(value, present=True)
    if container.__class__ is list and key.__class__ is int:
        if 0 <= key < len(container):
            return Optional(container[key], present=True)
        return Optional(present=False)
    raise UndecidedError


def has_field(container: Any, name: str) -> bool:
    """``has(container.name)``."""
    if container.__class__ is Optional:
        return bool(container.present) and has_field(container.value, name)
    if container.__class__ is DomainMap:
        return True
    if isinstance(container, dict):
        return name in container
    raise UndecidedError


def or_value(optional: Any, default: Any) -> Any:
    """``optional.orValue(default)``."""
    return optional.value if optional.present else default


def items(container: Any) -> Iterable[Any]:
    """What a fold with one variable visits."""
    if container.__class__ is list:
        result: list[Any] = container
        return result
    if isinstance(container, dict):
        return map_keys(container)
    raise UndecidedError


def pairs(container: Any) -> list[tuple[Any, Any]]:
    """What a fold with two variables visits."""
    if container.__class__ is list:
        return list(enumerate(container))
    if isinstance(container, dict):
        return [(unmap_key(key), value) for key, value in container.items()]
    raise UndecidedError


def transform_map(
    container: Any, keep: Callable[..., bool] | None, transform: Callable[..., Any]
) -> dict[Any, Any]:
    """``transformMap``."""
    return {
        map_key(key): transform(key, value)
        for key, value in pairs(container)
        if keep is None or keep(key, value)
    }


def transform_entries(
    container: Any, keep: Callable[..., bool] | None, transform: Callable[..., Any]
) -> dict[Any, Any]:
    """``transformMapEntry``; a key that comes twice is left to the interpreter."""
    result: dict[Any, Any] = {}
    for key, value in pairs(container):
        if keep is None or keep(key, value):
            for new_key, new_value in transform(key, value).items():
                if new_key in result:
                    raise UndecidedError
                result[new_key] = new_value
    return result


def filter_pairs(keep: Callable[..., bool], pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The pairs that satisfy a predicate of two variables."""
    return [pair for pair in pairs if keep(*pair)]


def optional_map(entries: list[tuple[Any, Any, bool]]) -> dict[Any, Any]:
    """A map literal some of whose entries have a question mark."""
    result: dict[Any, Any] = {}
    for key, value, optional in entries:
        if not optional:
            result[map_key(key)] = value
        elif value.present:
            result[map_key(key)] = value.value
        else:
            result.pop(map_key(key), None)
    return result


NAMESPACE: dict[str, Any] = {
    "MISSING": MISSING,
    "filter_pairs": filter_pairs,
    "has_field": has_field,
    "index": index,
    "items": items,
    "map_key": map_key,
    "optional_map": optional_map,
    "or_value": or_value,
    "pairs": pairs,
    "select_optional": select_optional,
    "transform_entries": transform_entries,
    "transform_map": transform_map,
    "truth": truth,
}
