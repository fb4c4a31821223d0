"""What every step of an evaluation shares: what it cost so far, its limits, and variables.

The steps are in `attributes` (names, fields, indices), `calls`, and `interpreter` (lists, maps,
messages, folds).
"""

from __future__ import annotations

import time
from typing import Any

from reference_allocator.cel.ast import Ident, Node
from reference_allocator.cel.errors import CelCostError, CelInterruptedError
from reference_allocator.cel.interpreter.outcomes import Lazy
from reference_allocator.cel.runtime.values import Growing


class Evaluation:
    """The state of one evaluation; a ``scope`` maps variable names to values."""

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
            message = "operation cancelled: actual cost limit exceeded"
            raise CelCostError(message)

    def look_at_clock(self) -> None:
        """Raise CelInterruptedError after the deadline."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            message = "operation interrupted: context deadline exceeded"
            raise CelInterruptedError(message)

    def ident(self, node: Ident, scope: dict[str, Any]) -> Any:
        """A name: a constant or a variable."""
        if node.constant is not None:
            return node.constant
        self.charge(1)
        return self.variable(node, scope)

    def variable(self, node: Ident, scope: dict[str, Any]) -> Any:
        """A variable's value, without its cost."""
        name = node.name if node.local else "." + node.name.removeprefix(".")
        value = scope[name]
        if value.__class__ is Lazy:
            lazy = value
            if not lazy.known:
                value = self.evaluate(lazy.value, lazy.scope)
                lazy.result = Growing() if value.__class__ is list and not value else value
                lazy.known = True
            value = scope[name] = lazy.result
        return value
