"""The state of an evaluation, and chains of selections: fields, entries, elements.

Errors and fields that are not there are values here. The other steps are in `interpreter`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from reference_allocator.cel.ast import NOT_FOLDED, Call, Ident, Literal, Node, Select
from reference_allocator.cel.errors import CelCostError, CelInterruptedError
from reference_allocator.cel.runtime import values
from reference_allocator.cel.runtime.conversions import show_value
from reference_allocator.cel.runtime.maps import (
    KEY_CLASSES,
    MISSING,
    Unreadable,
    find,
    map_keys,
    unmap_key,
)
from reference_allocator.cel.runtime.values import Growing, Optional, go_type


@dataclass(slots=True, eq=False)
class Err:
    """An error as a value."""

    message: str


@dataclass(slots=True, eq=False)
class Lazy:
    """The initial value of a fold's accumulator, evaluated once, when it is first read."""

    scope: dict[str, Any]
    value: Node
    is_evaluated: bool = False
    result: Any = None


ABSENT: Final = object()
SELECTIONS: Final = frozenset({"_[_]", "_[?_]", "_?._"})


def has_constant_pattern(node: Call, operands: list[Node]) -> bool:
    """Return whether cel-go compiles the call's regular expression once, beforehand."""
    if node.function not in ("matches", "find", "findAll") or len(operands) < 2:
        return False
    pattern = operands[1]
    return isinstance(pattern, Literal) or pattern.folded is not NOT_FOLDED


def as_value(value: Any, *, optional: bool) -> Any:
    """Return the value that the end of a chain is: optional where the chain is."""
    if value.__class__ is Err or not optional:
        return value
    return (
        values.Optional(present=False) if value is ABSENT else values.Optional(value, present=True)
    )


def finish_list(value: Any) -> Any:
    """Return the value; for a list that a fold still builds a copy, which it cannot change."""
    return list(value) if value.__class__ is values.Growing else value


def list_index(key: Any) -> Any:
    """Return the index that a value stands for, or an `Err`."""
    if key.__class__ in (int, values.UInt):
        return key
    if key.__class__ is float:
        return (
            int(key)
            if key.is_integer()
            else Err(f"unsupported index value {show_value(key)} in list")
        )
    return Err(f"unsupported index type '{values.type_name(key)}' in list")


def list_steps(items: Any, *, two: bool) -> Any:
    """Return the values of a fold's one or two variables, step by step, or an `Err`."""
    if isinstance(items, list):
        return list(enumerate(items)) if two else [(item, None) for item in items]
    if isinstance(items, dict):
        if two:
            return [
                (unmap_key(key), Err(value.message) if value.__class__ is Unreadable else value)
                for key, value in items.items()
            ]
        return [(key, None) for key in map_keys(items)]
    if two:
        return Err(f"unsupported comprehension range type: {values.go_type(items)}")
    return Err(f"got '{values.go_type(items)}', expected iterable type")


class Evaluation:
    """The state of one evaluation; a ``scope`` maps variable names to values.

    Selections are those of cel-go's ``interpreter/attributes.go``.
    """

    def __init__(self, limit: int | None, deadline: float | None) -> None:
        self._cost = 0
        self._limit = limit
        self._deadline = deadline

    def evaluate(self, node: Node, scope: dict[str, Any]) -> Any:
        """Return the value of an expression, or an `Err`."""
        raise NotImplementedError

    def charge(self, cost: int) -> None:
        """Count steps and what they make. Raises CelCostError: the limit is exceeded."""
        self._cost += cost
        if self._limit is not None and self._cost > self._limit:
            raise CelCostError("operation cancelled: actual cost limit exceeded")

    def look_at_clock(self) -> None:
        """Raise CelInterruptedError after the deadline."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise CelInterruptedError("operation interrupted: context deadline exceeded")

    def resolve_ident(self, node: Ident, scope: dict[str, Any]) -> Any:
        """Return the value of a type's name or of a variable."""
        if node.constant is not None:
            return node.constant
        name = node.name if node.local else "." + node.name.removeprefix(".")
        value = scope[name]
        if value.__class__ is Lazy:
            lazy = value
            if not lazy.is_evaluated:
                value = self.evaluate(lazy.value, lazy.scope)
                lazy.result = Growing() if value.__class__ is list and not value else value
                lazy.is_evaluated = True
            value = scope[name] = lazy.result
        return value

    def resolve_attribute(self, node: Node, scope: dict[str, Any]) -> Any:
        """Return the value of a chain of selections."""
        value, optional = self._resolve_chain(node, scope)
        return as_value(value, optional=optional)

    def _resolve_chain(self, node: Node, scope: dict[str, Any]) -> tuple[Any, bool]:
        """Return the value of a chain of selections and whether a question mark is in it."""
        if isinstance(node, Select):
            if node.constant is not None:
                return node.constant, False
            value, optional = self._resolve_chain(node.operand, scope)
            if value.__class__ is Err:
                return value, optional
            if node.test_only:
                if value is ABSENT:
                    return False, False
                selected = self._qualify(value, node.field, optional=True)
                return (selected if selected.__class__ is Err else selected is not ABSENT), False
            return self._resolve_next(value, node.field, optional)
        if isinstance(node, Call) and node.function in SELECTIONS:
            value, optional = self._resolve_chain(node.args[0], scope)
            if value.__class__ is Err or value is ABSENT:
                return value, optional
            # Not by `evaluate`, so that keys of keys nest as deep as the parser lets them.
            key = self.resolve_attribute(node.args[1], scope)
            if key.__class__ is Err:
                return key, optional
            return self._resolve_next(value, key, optional or node.function != "_[_]")
        value = self.evaluate(node, scope)
        if value.__class__ is Optional:
            return (value.value if value.present else ABSENT), True
        return value, False

    def _resolve_next(self, value: Any, key: Any, optional: bool) -> tuple[Any, bool]:
        if value is ABSENT:
            return value, True
        return self._qualify(value, key, optional=optional), optional

    def _qualify(self, value: Any, key: Any, *, optional: bool) -> Any:
        """Return a field, entry or element; `ABSENT` or an `Err` when there is none."""
        if key.__class__ not in KEY_CLASSES:
            return Err(f"invalid qualifier type: {go_type(key)}")
        missing = "no such key"
        if isinstance(value, dict):
            entry = find(value, key)
            if entry.__class__ is Unreadable:
                return Err(entry.message)
            if entry is not MISSING:
                return entry
        elif isinstance(value, list):
            index = list_index(key)
            if index.__class__ is Err:
                return index
            if 0 <= index < len(value):
                return value[index]
            missing = "index out of bounds"
        return ABSENT if optional else Err(f"{missing}: {show_value(key)}")
