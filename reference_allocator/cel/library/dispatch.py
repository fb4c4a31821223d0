"""The choice of a call's implementation by the values of its arguments.

The checker narrows a call to the overloads that fit its static types; where several remain, or an
argument's type is only known now, the values decide. What fits none is an error in cel-go's words
(``interpreter/interpretable.go``, ``common/decls``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

from reference_allocator.cel.environment.tables import load_table
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.library import (
    formatting,
    kubernetes,
    lists,
    named_formats,
    network,
    strings,
    urls,
)
from reference_allocator.cel.runtime import arithmetic, conversions, times
from reference_allocator.cel.runtime.equality import (
    are_equal,
    compare,
    equal_or_false,
    has_nan,
    list_contains,
    no_overload,
)
from reference_allocator.cel.runtime.maps import has_key, unmap_key
from reference_allocator.cel.runtime.values import Duration, Timestamp, type_name
from reference_allocator.cel.types import CelType
from reference_allocator.gates import MINORS


def _in(item: Any, container: Any) -> bool:
    if container.__class__ is list:
        return list_contains(container, item)
    if isinstance(container, dict):
        return has_key(container, item)
    raise no_overload()


def _not(value: Any) -> bool:
    if value.__class__ is not bool:
        raise no_overload()
    return not value


IMPLEMENTATIONS: Final[dict[str, Callable[..., Any]]] = {
    **conversions.OVERLOADS,
    **formatting.OVERLOADS,
    **kubernetes.OVERLOADS,
    **lists.OVERLOADS,
    **named_formats.OVERLOADS,
    **network.OVERLOADS,
    **strings.OVERLOADS,
    **times.OVERLOADS,
    **urls.OVERLOADS,
}
"""Overload, or function where all its overloads have one, -> implementation."""

# Functions that take any values and sort out the types themselves.
_BY_NAME: Final[dict[str, Callable[..., Any]]] = {
    **arithmetic.OPERATORS,
    "_==_": are_equal,
    "_!=_": lambda a, b: not equal_or_false(a, b),
    "_<_": lambda a, b: compare(a, b, "_<_") < 0,
    "_<=_": lambda a, b: compare(a, b, "_<=_") <= 0,
    "_>_": lambda a, b: compare(a, b, "_>_") > 0,
    "_>=_": lambda a, b: compare(a, b, "_>=_") >= 0,
    "!_": _not,
    "@in": _in,
    "flatten": lists.flatten,
    "size": lists.size,
}

_ORDERS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})

# Functions whose errors do not name the types.
_TERSE: Final = frozenset({"contains", "startsWith", "endsWith"})
_SORTS: Final = frozenset({"sort", "@sortByAssociatedKeys"})
_BY_TRAIT: Final = _SORTS | {"matches"}

_RUNTIME_NAMES: Final = {
    "null": "null_type",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}


def _accepts(declared: CelType, value: Any) -> bool:
    """Return whether a value may be an argument of a type; a list or map by its first item."""
    if declared.kind in ("dyn", "any", "param"):
        return True
    name = type_name(value)
    if _RUNTIME_NAMES.get(declared.kind, declared.name) != name:
        return False
    if not value or name not in ("list", "map") or not declared.params:
        return True
    if name == "list":
        return _accepts(declared.params[0], value[0])
    key, item = next(iter(value.items()))
    return _accepts(declared.params[0], unmap_key(key)) and _accepts(declared.params[1], item)


@cache
def _signatures(minor: str) -> dict[str, tuple[CelType, ...]]:
    return {
        overload.id: overload.args
        for overloads in load_table(minor).functions.values()
        for overload in overloads
    }


def _signature_of(overload: str) -> tuple[CelType, ...]:
    """Return the types of an overload's arguments; most are in the latest table."""
    return next(
        signatures[overload]
        for minor in reversed(MINORS)
        if overload in (signatures := _signatures(minor))
    )


def _make_no_overload(function: str, args: tuple[Any, ...]) -> CelRuntimeError:
    """Return the error of a call that no overload fits; its words depend on cel-go's binding."""
    if function in _TERSE:
        return no_overload()
    if function in _BY_TRAIT:
        receiver = isinstance(args[0], (str, Timestamp, Duration))
        return no_overload() if receiver else no_overload(function)
    return no_overload(function, *args)


def _without_nan(order: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return the order with false where one of the two is NaN, as cel-go 0.33 has it."""

    def call(left: Any, right: Any) -> bool:
        return not has_nan(left, right) and order(left, right)

    return call


@lru_cache(maxsize=4096)
def find_implementation(function: str, overloads: tuple[str, ...]) -> Callable[..., Any]:
    """Return a callable for a checked call; it raises CelRuntimeError when no overload fits."""
    by_name = _BY_NAME.get(function)
    if by_name is not None:
        if function in _ORDERS and not any("@" in overload for overload in overloads):
            return _without_nan(by_name)  # since 1.38
        return by_name
    candidates = []
    for overload in overloads:
        implementation = IMPLEMENTATIONS.get(overload) or IMPLEMENTATIONS.get(function)
        # No value of an authorization type exists for a selector, so those never match.
        if implementation is not None:
            candidates.append((_signature_of(overload), implementation))

    def call(*args: Any) -> Any:
        for signature, implementation in candidates:
            if len(signature) == len(args) and all(map(_accepts, signature, args)):
                return implementation(*args)
        if function in _SORTS and all(arg.__class__ is list for arg in args):
            return lists.sort_by_keys(args[0], args[-1])  # it says what is wrong with the items
        raise _make_no_overload(function, args)

    return call
