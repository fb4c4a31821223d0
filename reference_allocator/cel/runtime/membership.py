"""``x in [constants]``: cel-go turns the list into a set, which changes what equals what.

Membership is then a look-up rather than a comparison: numbers match across types when the
conversion is exact, and a version, which Go cannot hash, is an internal error
(``interpreter/decorators.go``, ``maybeOptimizeSetMembership``).
"""

from __future__ import annotations

from typing import Any

from reference_allocator.cel.ast import Call, ListExpr, Literal, Node
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.values import UInt, type_name

__all__ = ["UNHASHABLE", "constant_set", "is_member"]

UNHASHABLE = "internal error: runtime error: hash of unhashable type {}"

_HASHED = (bool, int, UInt, float, str)


def _key(value: Any) -> Any:
    return ("bool", value) if value.__class__ is bool else value


def constant_set(node: Call) -> frozenset[Any] | None:
    """The set that the right side of ``in`` becomes, or None if it stays a list."""
    container: Node = node.args[1]
    if node.overloads != ("in_list",) or not isinstance(container, ListExpr):
        return None
    if container.optional:
        return None
    values = []
    for element in container.elements:
        if not isinstance(element, Literal) or element.value.__class__ not in _HASHED:
            return None
        values.append(_key(element.value))
    return frozenset(values)


def is_member(members: frozenset[Any], value: Any) -> bool:
    """Whether the set has the value; raises CelRuntimeError as Go's hashing does."""
    if value.__class__ in _HASHED:
        return _key(value) in members
    if members and type_name(value) == "kubernetes.Semver":
        raise CelRuntimeError(UNHASHABLE.format("cel.Semver"))
    if members and value.__class__ is bytes:
        raise CelRuntimeError(UNHASHABLE.format("types.Bytes"))
    return False
