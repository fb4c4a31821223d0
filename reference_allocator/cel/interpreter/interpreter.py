"""The evaluator: every rule of cel-go's interpreter, errors included.

Errors are values here (`Err`), because `&&`, `||` and folds carry on after one. Source: cel-go
``interpreter/interpretable.go``, ``attributes.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reference_allocator.cel import ast
from reference_allocator.cel.cost.common import LIST_COST, MAP_COST
from reference_allocator.cel.errors import CelRuntimeError, CelUnsupportedError
from reference_allocator.cel.interpreter.calls import Calls
from reference_allocator.cel.interpreter.outcomes import ABSENT, Err, Lazy, plain, visited
from reference_allocator.cel.runtime.conversions import shown
from reference_allocator.cel.runtime.maps import map_key
from reference_allocator.cel.runtime.values import Growing, Optional


class Interpreter(Calls):
    """One evaluation; ``scope`` maps variable names to values.

    ``cost`` counts what it cost so far; beyond ``limit`` it stops with a CelCostError. After
    ``deadline`` (of `time.monotonic`) the next step of a fold stops it with a CelInterruptedError:
    only folds take long.
    """

    def __init__(self, limit: int | None = None, deadline: float | None = None) -> None:
        super().__init__(limit, deadline)
        self._evaluators: dict[type, Callable[[Any, dict[str, Any]], Any]] = {
            ast.Literal: lambda node, _: node.value,
            ast.Ident: self.ident,
            ast.Select: self.attribute,
            ast.Call: self.call,
            ast.ListExpr: self.list,
            ast.MapExpr: self.map,
            ast.StructExpr: self.message,
            ast.Comprehension: self.fold,
        }

    def run(self, node: ast.Node, scope: dict[str, Any]) -> Any:
        """The value of an expression; raises CelRuntimeError."""
        value = self.evaluate(node, scope)
        if value.__class__ is Err:
            raise CelRuntimeError(value.message)
        return list(value) if value.__class__ is Growing else value

    def evaluate(self, node: ast.Node, scope: dict[str, Any]) -> Any:
        if node.folded is not ast.NOT_FOLDED:
            return node.folded
        return self._evaluators[node.__class__](node, scope)

    def list(self, node: ast.ListExpr, scope: dict[str, Any]) -> Any:
        value = self._elements(node, scope)
        self.charge(LIST_COST)  # also for an element that is an error
        return value

    def _elements(self, node: ast.ListExpr, scope: dict[str, Any]) -> Any:
        result: list[Any] = []
        for index, element in enumerate(node.elements):
            value = self._part(element, scope, "list element" if index in node.optional else "")
            if value.__class__ is Err:
                return value
            if value is not ABSENT:
                result.append(value)
        return result

    def map(self, node: ast.MapExpr, scope: dict[str, Any]) -> Any:
        value = self._entries(node, scope)
        self.charge(MAP_COST)
        return value

    def _entries(self, node: ast.MapExpr, scope: dict[str, Any]) -> Any:
        result: dict[Any, Any] = {}
        for entry in node.entries:
            key = self.evaluate(entry.key, scope)
            if key.__class__ is Err:
                return key
            optional = f"entry '{shown(key)}'" if entry.optional else ""
            value = self._part(entry.value, scope, optional)
            if value.__class__ is Err:
                return value
            if value is ABSENT:
                result.pop(map_key(key), None)
            else:
                result[map_key(key)] = value
        return result

    def message(self, node: ast.StructExpr, _scope: dict[str, Any]) -> Any:
        """Refuse a protobuf message: no attribute of a device is one, and no selector needs one."""
        message = f"a protobuf message ({node.type_name}) is built, which is not evaluated here"
        raise CelUnsupportedError(message)

    def _part(self, node: ast.Node, scope: dict[str, Any], optional: str) -> Any:
        """The value of a part of a literal, or an `Err`.

        One with a question mark, which ``optional`` names, is what its optional value holds, or
        `ABSENT`.
        """
        value = self.evaluate(node, scope)
        if not optional or value.__class__ is Err:
            return plain(value)
        if value.__class__ is not Optional:
            problem = f"cannot initialize optional {optional} from non-optional value"
            return Err(f"{problem} {shown(value)}")
        return plain(value.value) if value.present else ABSENT

    def fold(self, node: ast.Comprehension, scope: dict[str, Any]) -> Any:
        items = self.evaluate(node.iter_range, scope)
        if items.__class__ is Err:
            return items
        steps = visited(items, two=bool(node.iter_var2))
        if steps.__class__ is Err:
            return steps
        inner = {**scope, node.accu_var: Lazy(scope, node.accu_init)}
        accu_name = node.accu_var
        for first, second in steps:
            self.look_at_clock()
            inner[node.iter_var] = first
            if node.iter_var2:
                inner[node.iter_var2] = second
            if self.evaluate(node.condition, inner) is False:
                break
            inner[accu_name] = self.evaluate(node.step, inner)
        for name in (node.iter_var, node.iter_var2):
            if name in scope:
                inner[name] = scope[name]
        result = self.evaluate(node.result, inner)
        return plain(result)


def interpret(interpreter: Interpreter, node: ast.Node, scope: dict[str, Any]) -> Any:
    """`Interpreter.run`, where nesting beyond what Python can do is an error of the expression."""
    try:
        return interpreter.run(node, scope)
    except RecursionError:
        raise CelRuntimeError("expression is nested too deeply to be evaluated") from None
