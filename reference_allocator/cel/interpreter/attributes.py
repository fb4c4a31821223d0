"""What every step of an evaluation shares, and chains of selections: fields, entries, elements.

The other steps are in `calls` and `interpreter` (lists, maps, messages, folds).
"""

from __future__ import annotations

import time
from typing import Any

from reference_allocator.cel.ast import NOT_FOLDED, Call, Ident, Node, Select
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
        self.cost = 0
        self._limit = limit
        self._deadline = deadline

    def evaluate(self, node: Node, scope: dict[str, Any]) -> Any:
        """The value of an expression, or an `Err`."""
        raise NotImplementedError

    def charge(self, cost: int) -> None:
        """Count a cost; raises CelCostError beyond the limit."""
        self.cost += cost
        if self._limit is not None and self.cost > self._limit:
            raise CelCostError("operation cancelled: actual cost limit exceeded")

    def look_at_clock(self) -> None:
        """Raise CelInterruptedError after the deadline."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise CelInterruptedError("operation interrupted: context deadline exceeded")

    def ident(self, node: Ident, scope: dict[str, Any]) -> Any:
        if node.constant is not None:
            return node.constant
        self.charge(1)
        return self.variable(node, scope)

    def variable(self, node: Ident, scope: dict[str, Any]) -> Any:
        """A variable's value, without its cost."""
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
        """The value of a chain, with its cost."""
        if isinstance(node, Select) and node.constant is not None:
            return node.constant
        value, optional = self._chain(node, scope)
        if not (outcomes.conditional_root(node) or (isinstance(node, Select) and node.test_only)):
            self.charge(1)
        return outcomes.as_value(value, optional=optional)

    def _chain(self, node: Node, scope: dict[str, Any]) -> tuple[Any, bool]:
        """The value of a chain of selections and whether a question mark made it optional.

        Each selection costs 1; the chain itself is charged by whoever evaluates it.
        """
        if isinstance(node, Select):
            if node.constant is not None:
                return node.constant, False
            value, optional = self._chain(node.operand, scope)
            if value.__class__ is outcomes.Err:
                return value, optional
            if node.test_only:
                if value is outcomes.ABSENT:
                    return False, False
                self.charge(1)
                found = self._qualify(value, node.field, optional=True)
                return (
                    found if found.__class__ is outcomes.Err else found is not outcomes.ABSENT
                ), False
            return self._next(value, node.field, optional, question=False)
        if isinstance(node, Call) and node.function in outcomes.SELECTIONS:
            value, optional = self._chain(node.args[0], scope)
            if value.__class__ is outcomes.Err or value is outcomes.ABSENT:
                return value, optional
            key = self.part(node.args[1], scope)
            if key.__class__ is outcomes.Err:
                if node.function == "_[_]":
                    self.charge(1)  # cel-go charges nothing for what an optional chain lacks
                return key, optional
            return self._next(value, key, optional, question=node.function != "_[_]")
        if isinstance(node, Ident) and node.constant is None:
            value = self.variable(node, scope)
        else:
            value = self.evaluate(node, scope)
        if value.__class__ is Optional:
            return (value.value if value.present else outcomes.ABSENT), True
        return value, False

    def part(self, node: Node, scope: dict[str, Any]) -> Any:
        """A key or a branch; the chain that it may be is not charged as such."""
        selection = isinstance(node, Call) and node.function in outcomes.SELECTIONS
        if node.folded is NOT_FOLDED and (selection or isinstance(node, (Ident, Select))):
            value, optional = self._chain(node, scope)
            return outcomes.as_value(value, optional=optional)
        return self.evaluate(node, scope)

    def _next(self, value: Any, key: Any, optional: bool, *, question: bool) -> tuple[Any, bool]:
        if value is outcomes.ABSENT:
            return value, True
        optional = optional or question
        found = self._qualify(value, key, optional=optional)
        if found is not outcomes.ABSENT:  # cel-go charges nothing for what an optional chain lacks
            self.charge(1)
        return found, optional

    def _qualify(self, value: Any, key: Any, *, optional: bool) -> Any:
        """A field, entry or element; `ABSENT` or an `Err` when there is none."""
        if key.__class__ not in KEY_CLASSES:
            return outcomes.Err(f"invalid qualifier type: {go_type(key)}")
        if isinstance(value, dict):
            found = find(value, key)
            if found is not MISSING:
                return found
            return outcomes.ABSENT if optional else outcomes.Err(f"no such key: {shown(key)}")
        if isinstance(value, list):
            index = outcomes.list_index(key)
            if index.__class__ is outcomes.Err:
                return index
            if 0 <= index < len(value):
                return value[index]
            return (
                outcomes.ABSENT if optional else outcomes.Err(f"index out of bounds: {shown(key)}")
            )
        return outcomes.ABSENT if optional else outcomes.Err(f"no such key: {shown(key)}")
