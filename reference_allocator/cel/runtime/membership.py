"""``x in [constants]``: cel-go turns the list into a set, which changes what equals what.

Membership is then a look-up rather than a comparison: numbers match across types when the
conversion is exact, and what Go cannot hash is an internal error
(``interpreter/decorators.go``, ``maybeOptimizeSetMembership``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reference_allocator.cel.runtime.maps import check_hashable
from reference_allocator.cel.runtime.values import UInt

_HASHED: Final = frozenset({bool, int, UInt, float, str})


def _key(value: Any) -> Any:
    return ("bool", value) if value.__class__ is bool else value


def constant_set(values: Sequence[Any]) -> frozenset[Any] | None:
    """The set that constants on the right side of ``in`` become, or None if they stay a list."""
    if not values or any(value.__class__ not in _HASHED for value in values):
        return None
    # Go adds an integer's nearest double too, even where that is another number.
    doubles = [float(value) for value in values if value.__class__ in (int, UInt)]
    return frozenset([*map(_key, values), *doubles])


def is_member(members: frozenset[Any], value: Any) -> bool:
    """Whether the set has the value; raises CelInternalError as Go's hashing does."""
    if value.__class__ in _HASHED:
        return _key(value) in members
    check_hashable(value)
    return False
