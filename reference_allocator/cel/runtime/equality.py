"""Equality and order of values, with cel-go's asymmetries.

Numbers compare across types; other values of different types are unequal. Versions and quantities
compare only with their own kind and are an error otherwise, but only on the left side; inside a
list or map such an error counts as equal (``common/types``, ``k8s.io/apiserver/pkg/cel``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.maps import MISSING, Unreadable, find, unmap_key
from reference_allocator.cel.runtime.values import (
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    type_name,
)

NO_OVERLOAD = "no such overload"
_NUMBERS = frozenset({int, UInt, float})
_ORDERED = _NUMBERS | {str, bytes, bool, Duration, Timestamp}
_PLAIN = frozenset({bool, int, str, bytes, UInt})
_EXACT = 2**53
"""Below it a double equals an integer only where both are the same number."""
_HASHABLE = frozenset({bool, bytes, type(None), Duration, Timestamp, TypeValue})
_STRICT = frozenset(
    """
        kubernetes.Quantity kubernetes.Semver kubernetes.URL kubernetes.NamedFormat net.IP
        net.CIDR
    """.split()
)


def no_overload(function: str = "", *args: Any) -> CelRuntimeError:
    """Return the error of a call whose arguments fit no signature."""
    if not function:
        return CelRuntimeError(NO_OVERLOAD)
    if not args:
        return CelRuntimeError(f"{NO_OVERLOAD}: {function}")
    return CelRuntimeError(f"{NO_OVERLOAD}: {function}({', '.join(map(type_name, args))})")


def _order_numbers(left: Any, right: Any) -> int:
    """Return -1, 0 or 1; a double decides the precision, as in Go."""
    if left.__class__ is float or right.__class__ is float:
        whole = left if right.__class__ is float else right
        double = right if right.__class__ is float else left
        bounds = (0, 2**64 - 1) if whole.__class__ is UInt else (-(2**63), 2**63 - 1)
        if whole.__class__ is not float and float(bounds[0]) <= double <= float(bounds[1]):
            left, right = float(left), float(right)
    return int(left > right) - int(left < right)


def are_equal(left: Any, right: Any) -> bool:
    """Evaluate ``left == right``. Raises CelRuntimeError: cel-go has no answer."""
    kind = left.__class__
    if kind is right.__class__ and kind in _PLAIN:
        return bool(left == right)
    if left is None or right is None:
        return left is None and right is None
    if kind in _NUMBERS:
        if right.__class__ not in _NUMBERS or left != left or right != right:
            return False
        return _order_numbers(left, right) == 0
    name, other = type_name(left), type_name(right)
    if name in _STRICT:
        if name != other or getattr(right, "derived", False):
            raise no_overload()
        return bool(left == right)
    if name != other:
        return False
    if name == "list":
        return len(left) == len(right) and all(map(_not_unequal, left, right))
    if name == "map":
        for value in left.values():
            if value.__class__ is Unreadable:
                raise CelRuntimeError(value.message)
        return len(left) == len(right) and all(
            (other := find(right, unmap_key(key))) is not MISSING and _not_unequal(value, other)
            for key, value in left.items()
        )
    if kind is Optional:
        if not (left.present and right.present):
            return bool(left.present == right.present)
        return are_equal(left.value, right.value)
    return bool(left == right)


def _not_unequal(left: Any, right: Any) -> bool:
    try:
        return are_equal(left, right)
    except CelRuntimeError:
        return True


def equal_or_false(left: Any, right: Any) -> bool:
    """Evaluate ``left == right``, false where there is no answer, as membership is tested."""
    try:
        return are_equal(left, right)
    except CelRuntimeError:
        return False


def compare(left: Any, right: Any, function: str = "") -> int:
    """Return -1, 0 or 1 for values with an order.

    Raises CelRuntimeError: they have no order; names ``function`` where cel-go does.
    """
    kind = left.__class__
    if kind in _NUMBERS:
        numbers = right.__class__ in _NUMBERS
        # NaN is unequal to itself.
        if left != left or (numbers and right != right):
            raise CelRuntimeError("NaN values cannot be ordered")
        if not numbers:
            raise no_overload()
        return _order_numbers(left, right)
    if kind in (str, bytes, bool):
        if right.__class__ is not kind:
            raise no_overload()
        # Go compares UTF-8, which orders as code points do.
        return int(left > right) - int(left < right)
    if kind in (Duration, Timestamp):
        if right.__class__ is not kind:
            raise no_overload()
        return int(left.nanos > right.nanos) - int(left.nanos < right.nanos)
    raise no_overload(function)


def has_nan(left: Any, right: Any) -> bool:
    """Return whether one of two values is NaN, and the first is of a type that has an order."""
    numbers = [value for value in (left, right) if value.__class__ is float]
    return any(value != value for value in numbers) and left.__class__ in _ORDERED


def plain_keys(values: Iterable[Any]) -> list[Any] | None:
    """Return a hashable form of each value, equal where the values are; None if one has none.

    NaN and large doubles have none, and what compares by rules of its own.
    """
    try:
        return [_plain_key(value) for value in values]
    except TypeError:
        return None


def _plain_key(value: Any) -> Any:
    kind = value.__class__
    if kind is str or kind is int:
        return value
    if kind is UInt or (kind is float and abs(value) < _EXACT):
        return int(value) if value == int(value) else value
    if kind is list:
        return ("list", *map(_plain_key, value))
    if isinstance(value, dict):
        entries = ((_plain_key(key), _plain_key(item)) for key, item in value.items())
        return "map", frozenset(entries)
    if kind in _HASHABLE:
        return kind, value
    raise TypeError(kind)


def list_contains(items: list[Any], item: Any) -> bool:
    """Return whether a list has the item, by equality; errors count as unequal."""
    return any(equal_or_false(item, element) for element in items)
