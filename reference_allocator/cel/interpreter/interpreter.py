"""The evaluator that defines the result: every rule of cel-go's interpreter, errors included.

Generated code (``codegen``) is faster but only right while nothing goes wrong; whenever it meets an
error it gives up and this evaluator decides. Errors are values here (`Err`), because `&&`, `||`
and folds carry on after one. Source: cel-go ``interpreter/interpretable.go``, ``attributes.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reference_allocator.cel.ast import (
    NOT_FOLDED,
    Call,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.interpreter.aggregates import Aggregates
from reference_allocator.cel.interpreter.calls import Calls
from reference_allocator.cel.interpreter.outcomes import Err
from reference_allocator.cel.runtime.values import Growing


class Interpreter(Calls, Aggregates):
    """One evaluation; ``scope`` maps variable names to values.

    ``cost`` counts what it cost so far; beyond ``limit`` it stops with a CelCostError. After
    ``deadline`` (of `time.monotonic`) the next step of a fold stops it with a CelInterruptedError:
    only folds take long.
    """

    def __init__(self, limit: int | None = None, deadline: float | None = None) -> None:
        super().__init__(limit, deadline)
        self._evaluators: dict[type, Callable[[Any, dict[str, Any]], Any]] = {
            Literal: lambda node, _: node.value,
            Ident: self.ident,
            Select: self.attribute,
            Call: self.call,
            ListExpr: self.list,
            MapExpr: self.map,
            StructExpr: self.message,
            Comprehension: self.fold,
        }

    def run(self, node: Node, scope: dict[str, Any]) -> Any:
        """The value of an expression; raises CelRuntimeError."""
        value = self.evaluate(node, scope)
        if value.__class__ is Err:
            raise CelRuntimeError(value.message)
        return list(value) if value.__class__ is Growing else value

    def evaluate(self, node: Node, scope: dict[str, Any]) -> Any:
        """The value of an expression, or an `Err`."""
        if node.folded is not NOT_FOLDED:
            return node.folded
        return self._evaluators[node.__class__](node, scope)


def interpret(interpreter: Interpreter, node: Node, scope: dict[str, Any]) -> Any:
    """`Interpreter.run`, where nesting beyond what Python can do is an error of the expression."""
    try:
        return interpreter.run(node, scope)
    except RecursionError:
        message = "expression is nested too deeply to be evaluated"
        raise CelRuntimeError(message) from None
