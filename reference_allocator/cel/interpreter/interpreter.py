"""The evaluator: every rule of cel-go's interpreter, errors included.

Errors are values here (`Err`), because `&&`, `||` and folds carry on after one. Source: cel-go
``interpreter/interpretable.go``, ``attributes.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from reference_allocator.cel import ast
from reference_allocator.cel.errors import (
    CelCostError,
    CelInternalError,
    CelRuntimeError,
    CelUnsupportedError,
)
from reference_allocator.cel.interpreter.attributes import (
    ABSENT,
    SELECTIONS,
    Err,
    Evaluation,
    Lazy,
    finish_list,
    has_constant_pattern,
    list_steps,
)
from reference_allocator.cel.parser.macros import ACCUMULATOR
from reference_allocator.cel.runtime.conversions import show_value
from reference_allocator.cel.runtime.equality import NO_OVERLOAD
from reference_allocator.cel.runtime.maps import is_member, map_key
from reference_allocator.cel.runtime.values import Growing, Optional

_SIZED: Final = frozenset({str, bytes, list})
_PER_STEP: Final = 10
"""The number of characters or elements of an argument or a result that cost as much as a step."""


class Interpreter(Evaluation):
    """One evaluation; ``scope`` maps variable names to values.

    Beyond ``limit`` steps it stops with a CelCostError, so that no expression takes all time or
    memory; what a step costs is simpler than in cel-go. After ``deadline`` (of `time.monotonic`)
    the next step of a fold stops it with a CelInterruptedError: only folds take long.
    ``since_1_38``: as cel-go 0.33 and not as 0.29 does. That evaluates the second of two operands
    though the first is an error, so that what makes Go panic there ends the evaluation; and an
    empty text is no range.
    """

    def __init__(
        self, limit: int | None, deadline: float | None, *, since_1_38: bool = False
    ) -> None:
        super().__init__(limit, deadline)
        self._since_1_38 = since_1_38

    def run(self, node: ast.Node, scope: dict[str, Any]) -> Any:
        """Return the value of an expression.

        Raises CelRuntimeError: it has no value, or nests deeper than Python can evaluate.
        """
        try:
            value = self.evaluate(node, scope)
        except RecursionError:
            raise CelRuntimeError("expression is nested too deeply to be evaluated") from None
        if value.__class__ is Err:
            raise CelRuntimeError(value.message)
        return finish_list(value)

    def evaluate(self, node: ast.Node, scope: dict[str, Any]) -> Any:
        if node.folded is not ast.NOT_FOLDED:
            return node.folded
        return _EVALUATORS[node.__class__](self, node, scope)

    # Calls, of cel-go's ``interpreter/interpretable.go``

    def evaluate_call(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        """Return the value of a call, or an `Err`."""
        function = node.function
        if function in ("_&&_", "_||_"):
            return self._evaluate_logical(node, scope)
        if function == "_?_:_":
            return self._evaluate_conditional(node, scope)
        if function in SELECTIONS:
            return self.resolve_attribute(node, scope)
        if function == "@not_strictly_false":
            return self.evaluate(node.args[0], scope) is not False
        if node.target is not None and function in ("orValue", "or"):
            return self._evaluate_or(node, node.target, scope)
        operands = node.args if node.target is None else [node.target, *node.args]
        if node.members is not None:
            operands = operands[:1]
        args: list[Any] = []
        cost = 1
        for operand in operands:
            value = self.evaluate(operand, scope)
            if value.__class__ is Err:
                if not self._since_1_38 and len(operands) == 2 and not args:
                    with suppress(CelUnsupportedError):
                        self.evaluate(operands[1], scope)
                return value
            if value.__class__ in _SIZED:
                cost += len(value) // _PER_STEP
            args.append(value)
        self.charge(cost)
        result = self._apply_call(node, operands, args)
        if result.__class__ in _SIZED:
            self.charge(len(result) // _PER_STEP)
        return result

    def _apply_call(self, node: ast.Call, operands: list[ast.Node], args: list[Any]) -> Any:
        if args and args[0].__class__ is Growing and node.function == "_+_":
            of_fold = isinstance(operands[0], ast.Ident) and operands[0].name == ACCUMULATOR
            if of_fold and isinstance(args[1], list):
                args[0].extend(args[1])
                return args[0]
        for index, arg in enumerate(args):
            if arg.__class__ is Growing:
                args[index] = finish_list(arg)
        try:
            if node.members is not None:
                return is_member(node.members, args[0])
            return node.implementation(*args)
        except (CelCostError, CelInternalError):
            raise
        except CelRuntimeError as failure:
            text = str(failure)
            names_function = text.startswith(f"{NO_OVERLOAD}: {node.function}")
            if names_function and has_constant_pattern(node, operands) and args[1].__class__ is str:
                text = NO_OVERLOAD  # the compiled pattern has its own, shorter error
            return Err(text)

    def _evaluate_or(self, node: ast.Call, target: ast.Node, scope: dict[str, Any]) -> Any:
        value = self.evaluate(target, scope)
        if value.__class__ is Err:
            return value
        if value.__class__ is not Optional:
            return Err(NO_OVERLOAD)
        if value.present:
            return value.value if node.function == "orValue" else value
        return self.evaluate(node.args[0], scope)

    def _evaluate_logical(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        decides = node.function == "_||_"
        error: Err | None = None
        for term in node.args:
            value = self.evaluate(term, scope)
            if value is decides:
                return value
            if error is None and value.__class__ is not bool:
                error = value if value.__class__ is Err else Err(NO_OVERLOAD)
        return not decides if error is None else error

    def _evaluate_conditional(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        branch: ast.Node = node
        while (
            isinstance(branch, ast.Call) and branch.function == "_?_:_"
        ):  # a chain nests no deeper
            condition = self.evaluate(branch.args[0], scope)
            if condition.__class__ is Err:
                return condition
            if condition.__class__ is not bool:
                return Err(NO_OVERLOAD)
            branch = branch.args[1 if condition else 2]
        return self.evaluate(branch, scope)

    # Lists, maps, messages, folds

    def evaluate_list(self, node: ast.ListExpr, scope: dict[str, Any]) -> Any:
        """Return the value of a list literal, or an `Err`."""
        self.charge(len(node.elements))
        result: list[Any] = []
        for index, element in enumerate(node.elements):
            value = self._evaluate_item(
                element, scope, "list element" if index in node.optional else ""
            )
            if value.__class__ is Err:
                return value
            if value is not ABSENT:
                result.append(value)
        return result

    def evaluate_map(self, node: ast.MapExpr, scope: dict[str, Any]) -> Any:
        """Return the value of a map literal, or an `Err`."""
        self.charge(len(node.entries))
        result: dict[Any, Any] = {}
        for entry in node.entries:
            key = self.evaluate(entry.key, scope)
            if key.__class__ is Err:
                return key
            optional = f"entry '{show_value(key)}'" if entry.optional else ""
            value = self._evaluate_item(entry.value, scope, optional)
            if value.__class__ is Err:
                return value
            if value is ABSENT:
                result.pop(map_key(key), None)
            else:
                result[map_key(key)] = value
        return result

    def refuse_message(self, node: ast.StructExpr, _scope: dict[str, Any]) -> Any:
        """Refuse a protobuf message: no attribute of a device is one, and no selector needs one."""
        message = f"a protobuf message ({node.type_name}) is built, which is not evaluated here"
        raise CelUnsupportedError(message)

    def _evaluate_item(self, node: ast.Node, scope: dict[str, Any], optional: str) -> Any:
        """Return the value of an item of a literal, or an `Err`.

        For an item with a question mark, which ``optional`` names, it is the content of its
        optional value, or `ABSENT`.
        """
        value = self.evaluate(node, scope)
        if not optional or value.__class__ is Err:
            return finish_list(value)
        if value.__class__ is not Optional:
            problem = f"cannot initialize optional {optional} from non-optional value"
            return Err(f"{problem} {show_value(value)}")
        return finish_list(value.value) if value.present else ABSENT

    def evaluate_comprehension(self, node: ast.Comprehension, scope: dict[str, Any]) -> Any:
        """Return the value of a fold, or an `Err`."""
        items = self.evaluate(node.iter_range, scope)
        if items.__class__ is Err:
            return items
        is_empty = self._since_1_38 and items.__class__ in (str, bytes) and not items
        steps = [] if is_empty else list_steps(items, two=bool(node.iter_var2))
        if steps.__class__ is Err:
            return steps
        inner = {**scope, node.accu_var: Lazy(scope, node.accu_init)}
        accu_name = node.accu_var
        for first, second in steps:
            self.look_at_clock()
            self.charge(_PER_STEP)
            inner[node.iter_var] = first
            if node.iter_var2:
                inner[node.iter_var2] = second
            if self.evaluate(node.condition, inner) is False:
                break
            inner[accu_name] = self.evaluate(node.step, inner)
        for name in (node.iter_var, node.iter_var2):
            if name in scope:
                inner[name] = scope[name]
        return finish_list(self.evaluate(node.result, inner))


_EVALUATORS: Final[Mapping[type, Callable[[Interpreter, Any, dict[str, Any]], Any]]] = {
    ast.Literal: lambda _self, node, _scope: node.value,
    ast.Ident: Interpreter.resolve_ident,
    ast.Select: Interpreter.resolve_attribute,
    ast.Call: Interpreter.evaluate_call,
    ast.ListExpr: Interpreter.evaluate_list,
    ast.MapExpr: Interpreter.evaluate_map,
    ast.StructExpr: Interpreter.refuse_message,
    ast.Comprehension: Interpreter.evaluate_comprehension,
}
