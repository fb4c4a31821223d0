"""What every step of an evaluation shares, and chains of selections: fields, entries, elements.

The other steps are in `interpreter`.
"""

from __future__ import annotations

import time
from typing import Any

from reference_allocator.cel.ast import Call, Ident, Node, Select
from reference_allocator.cel.errors import CelCostError, CelInterruptedError
from reference_allocator.cel.interpreter import outcomes
from reference_allocator.cel.runtime.conversions import shown
from reference_allocator.cel.runtime.maps import KEY_CLASSES, MISSING, find
from reference_allocator.cel.runtime.values import Growing, Optional, go_type


class Evaluation:
    """The state of one evaluation; a ``scope`` maps variable names to values.

    Selections are those of cel-go's ``interpreter/attributes.go``.
    """

    def __init__(self, limit: int | None, deadline: float | None) -> None:
        self._cost = 0
        self._limit = limit
        self._deadline = deadline

    def evaluate(self, node: Node, scope: dict[str, Any]) -> Any:
        """The value of an expression, or an `Err`."""
        raise NotImplementedError

    def charge(self, cost: int) -> None:
        """Count steps and what they make; raises CelCostError beyond the limit."""
        self._cost += cost
        if self._limit is not None and self._cost > self._limit:
            raise CelCostError("operation cancelled: actual cost limit exceeded")

    def look_at_clock(self) -> None:
        """Raise CelInterruptedError after the deadline."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise CelInterruptedError("operation interrupted: context deadline exceeded")

    def ident(self, node: Ident, scope: dict[str, Any]) -> Any:
        """A type's name, or the value of a variable."""
        if node.constant is not None:
            return node.constant
        name = node.name if node.local else "." + node.name.removeprefix(".")
        value = scope[name]
        if value.__class__ is outcomes.Lazy:
            lazy = value
            if not lazy.known:
                value = self.evaluate(lazy.value, lazy.scope)
                lazy.result = Growing() if value.__class__ is list and not value else value
                lazy.known = True
            value = scope[name] = lazy.result
        return value

    def attribute(self, node: Node, scope: dict[str, Any]) -> Any:
        """The value of a chain."""
        value, optional = self._chain(node, scope)
        return outcomes.as_value(value, optional=optional)

    def _chain(self, node: Node, scope: dict[str, Any]) -> tuple[Any, bool]:
        """The value of a chain of selections and whether a question mark made it optional."""
        if isinstance(node, Select):
            if node.constant is not None:
                return node.constant, False
            value, optional = self._chain(node.operand, scope)
            if value.__class__ is outcomes.Err:
                return value, optional
            if node.test_only:
                if value is outcomes.ABSENT:
                    return False, False
                found = self._qualify(value, node.field, optional=True)
                return (
                    found if found.__class__ is outcomes.Err else found is not outcomes.ABSENT
                ), False
            return self._next(value, node.field, optional)
        if isinstance(node, Call) and node.function in outcomes.SELECTIONS:
            value, optional = self._chain(node.args[0], scope)
            if value.__class__ is outcomes.Err or value is outcomes.ABSENT:
                return value, optional
            # Not by `evaluate`, so that keys of keys nest as deep as the parser lets them.
            key = self.attribute(node.args[1], scope)
            if key.__class__ is outcomes.Err:
                return key, optional
            return self._next(value, key, optional or node.function != "_[_]")
        value = self.evaluate(node, scope)
        if value.__class__ is Optional:
            return (value.value if value.present else outcomes.ABSENT), True
        return value, False

    def _next(self, value: Any, key: Any, optional: bool) -> tuple[Any, bool]:
        if value is outcomes.ABSENT:
            return value, True
        return self._qualify(value, key, optional=optional), optional

    def _qualify(self, value: Any, key: Any, *, optional: bool) -> Any:
        """A field, entry or element; `ABSENT` or an `Err` when there is none."""
        if key.__class__ not in KEY_CLASSES:
            return outcomes.Err(f"invalid qualifier type: {go_type(key)}")
        missing = "no such key"
        if isinstance(value, dict):
            found = find(value, key)
            if found is not MISSING:
                return found
        elif isinstance(value, list):
            index = outcomes.list_index(key)
            if index.__class__ is outcomes.Err:
                return index
            if 0 <= index < len(value):
                return value[index]
            missing = "index out of bounds"
        return outcomes.ABSENT if optional else outcomes.Err(f"{missing}: {shown(key)}")
