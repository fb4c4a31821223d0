"""The evaluator that defines the result: every rule of cel-go's interpreter, errors included.

Generated code (``codegen``) is faster but only right while nothing goes wrong; whenever it meets an
error it gives up and this evaluator decides. Errors are values here (`Err`), because `&&`, `||`
and folds carry on after one. Source: cel-go ``interpreter/interpretable.go``, ``attributes.go``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

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
)
from reference_allocator.cel.cost.actual import call_cost
from reference_allocator.cel.cost.ranges import LIST_COST, MAP_COST
from reference_allocator.cel.errors import CelCostError, CelInterruptedError, CelRuntimeError
from reference_allocator.cel.macros import ACCUMULATOR
from reference_allocator.cel.results import (
    ABSENT,
    SELECTIONS,
    Err,
    Growing,
    Lazy,
    as_value,
    check_tracked,
    conditional_root,
    equality_result,
    go_type,
    has_constant_pattern,
    list_index,
    plain,
    stops_at_errors,
    visited,
)
from reference_allocator.cel.runtime.conversions import shown
from reference_allocator.cel.runtime.dispatch import implementation
from reference_allocator.cel.runtime.equality import NO_OVERLOAD, no_overload
from reference_allocator.cel.runtime.lists import insert_entry
from reference_allocator.cel.runtime.membership import UNHASHABLE, constant_set, is_member
from reference_allocator.cel.runtime.values import Optional, map_key, type_name, unmap_key

__all__ = ["Interpreter", "interpret"]


class Interpreter:
    """One evaluation; ``scope`` maps variable names to values.

    ``cost`` counts what it cost so far; beyond ``limit`` it stops with a CelCostError. After
    ``deadline`` (of `time.monotonic`) the next step of a fold stops it with a CelInterruptedError:
    only folds take long.
    """

    def __init__(self, limit: int | None = None, deadline: float | None = None) -> None:
        self.cost = 0
        self._limit = limit
        self._deadline = deadline
        self._evaluators: dict[type, Callable[[Any, dict[str, Any]], Any]] = {
            Literal: lambda node, _: node.value,
            Ident: self._ident,
            Select: self._attribute,
            Call: self._call,
            ListExpr: self._list,
            MapExpr: self._map,
            Comprehension: self._fold,
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

    # Names, fields and indices

    def _ident(self, node: Ident, scope: dict[str, Any]) -> Any:
        if node.constant is not None:
            return node.constant
        self._charge(1)
        return self._variable(node, scope)

    def _variable(self, node: Ident, scope: dict[str, Any]) -> Any:
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

    def _attribute(self, node: Node, scope: dict[str, Any]) -> Any:
        if isinstance(node, Select) and node.constant is not None:
            return node.constant
        value, optional = self._chain(node, scope)
        if not (conditional_root(node) or (isinstance(node, Select) and node.test_only)):
            self._charge(1)
        return as_value(value, optional=optional)

    def _chain(self, node: Node, scope: dict[str, Any]) -> tuple[Any, bool]:
        """The value of a chain of selections and whether a question mark made it optional.

        Each selection costs 1; the chain itself is charged by whoever evaluates it.
        """
        if isinstance(node, Select):
            if node.constant is not None:
                return node.constant, False
            value, optional = self._chain(node.operand, scope)
            if value.__class__ is Err:
                return value, optional
            if node.test_only:
                if value is ABSENT:
                    return False, False
                self._charge(1)
                found = self._qualify(value, node.field, optional=True)
                return (found if found.__class__ is Err else found is not ABSENT), False
            return self._next(value, node.field, optional, question=False)
        if isinstance(node, Call) and node.function in SELECTIONS:
            value, optional = self._chain(node.args[0], scope)
            if value.__class__ is Err or value is ABSENT:
                return value, optional
            key = self._part(node.args[1], scope)
            if key.__class__ is Err:
                return key, optional
            return self._next(value, key, optional, question=node.function != "_[_]")
        if isinstance(node, Ident) and node.constant is None:
            value = self._variable(node, scope)
        else:
            value = self.evaluate(node, scope)
        if value.__class__ is Optional:
            return (value.value if value.present else ABSENT), True
        return value, False

    def _part(self, node: Node, scope: dict[str, Any]) -> Any:
        """A key or a branch; the chain that it may be is not charged as such."""
        selection = isinstance(node, Call) and node.function in SELECTIONS
        if node.folded is NOT_FOLDED and (selection or isinstance(node, (Ident, Select))):
            value, optional = self._chain(node, scope)
            return as_value(value, optional=optional)
        return self.evaluate(node, scope)

    def _next(self, value: Any, key: Any, optional: bool, *, question: bool) -> tuple[Any, bool]:
        if value is ABSENT:
            return value, True
        optional = optional or question
        found = self._qualify(value, key, optional=optional)
        if found is not ABSENT:  # cel-go charges nothing for what an optional chain lacks
            self._charge(1)
        return found, optional

    def _qualify(self, value: Any, key: Any, *, optional: bool) -> Any:
        """A field, entry or element; `ABSENT` or an `Err` when there is none."""
        if isinstance(value, dict):
            try:
                return value[map_key(key)]
            except KeyError:
                return ABSENT if optional else Err(f"no such key: {shown(key)}")
            except TypeError:
                return Err(f"invalid qualifier type: {go_type(key)}")
        if isinstance(value, list):
            index = list_index(key)
            if index.__class__ is Err:
                return index
            if 0 <= index < len(value):
                return value[index]
            return ABSENT if optional else Err(f"index out of bounds: {shown(key)}")
        return ABSENT if optional else Err(f"no such key: {shown(key)}")

    # Calls

    def _call(self, node: Call, scope: dict[str, Any]) -> Any:
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(self, node, scope)
        if node.function in ("orValue", "or") and node.target is not None:
            return self._or(node, scope)
        operands = node.args if node.target is None else [node.target, *node.args]
        args: list[Any] = []
        error: Err | None = None
        for operand in operands:
            value = self.evaluate(operand, scope)
            args.append(value)
            if value.__class__ is Err:
                error = error or value
                if len(operands) > 2 or stops_at_errors(node, operands):
                    break  # Go evaluates both sides of a binary call, else it stops here
        result = self._apply(node, operands, args) if error is None else error
        if len(args) == len(operands):
            self._charge_call(node, args, result)
        return result

    def _apply(self, node: Call, operands: list[Node], args: list[Any]) -> Any:
        """The call's value for its arguments."""
        if args and args[0].__class__ is Growing and node.function == "_+_":
            first = operands[0]
            if isinstance(first, Ident) and first.name == ACCUMULATOR and isinstance(args[1], list):
                args[0].extend(args[1])
                return args[0]
        values = [plain(arg) for arg in args]
        try:
            return implementation(node.function, node.overloads)(*values)
        except CelRuntimeError as failure:
            text = str(failure)
            named = text.startswith(f"{NO_OVERLOAD}: {node.function}")
            if named and has_constant_pattern(node, operands) and args[1].__class__ is str:
                text = NO_OVERLOAD  # the compiled pattern has its own, shorter error
            return Err(text)

    def _charge(self, cost: int) -> None:
        self.cost += cost
        if self._limit is not None and self.cost > self._limit:
            message = "operation cancelled: actual cost limit exceeded"
            raise CelCostError(message)

    def _charge_call(self, node: Call, args: list[Any], result: Any) -> None:
        check_tracked(node, args)
        self._charge(call_cost(node.function, node.overloads, args, result))

    def _or(self, node: Call, scope: dict[str, Any]) -> Any:
        assert node.target is not None
        value = self.evaluate(node.target, scope)
        if value.__class__ is Err:
            return value
        if value.__class__ is not Optional:
            return Err(NO_OVERLOAD)
        if value.present:
            return value.value if node.function == "orValue" else value
        return self.evaluate(node.args[0], scope)

    def _logical(self, node: Call, scope: dict[str, Any]) -> Any:
        decides = node.function == "_||_"
        error: Err | None = None
        for term in node.args:
            value = self.evaluate(term, scope)
            if value is decides:
                return value
            if error is None and value.__class__ is not bool:
                error = value if value.__class__ is Err else Err(NO_OVERLOAD)
        return not decides if error is None else error

    def _conditional(self, node: Call, scope: dict[str, Any]) -> Any:
        condition = self.evaluate(node.args[0], scope)
        if condition.__class__ is Err:
            return condition
        if condition.__class__ is not bool:
            return Err(NO_OVERLOAD)
        return self._part(node.args[1 if condition else 2], scope)

    def _equality(self, node: Call, scope: dict[str, Any]) -> Any:
        left = self.evaluate(node.args[0], scope)
        right = self.evaluate(node.args[1], scope)
        result = equality_result(node.function, left, right)
        self._charge_call(node, [left, right], result)
        return result

    def _in(self, node: Call, scope: dict[str, Any]) -> Any:
        members = constant_set(node)
        if members is not None:
            if not members:
                return False
            value = self.evaluate(node.args[0], scope)
            if value.__class__ is Err:
                return value
            return is_member(members, value)
        item = self.evaluate(node.args[0], scope)
        container = self.evaluate(node.args[1], scope)
        result = next((value for value in (item, container) if value.__class__ is Err), None)
        if result is None:
            result = self._apply(node, node.args, [item, container])
        self._charge_call(node, [item, container], result)
        return result

    def _not_strictly_false(self, node: Call, scope: dict[str, Any]) -> Any:
        value = self.evaluate(node.args[0], scope)
        self._charge(1)
        return value is not False

    def _insert(self, node: Call, scope: dict[str, Any]) -> Any:
        """``cel.@mapInsert``: the accumulator of a fold that builds a map."""
        values = [self.evaluate(arg, scope) for arg in node.args]
        self._charge(1)
        for value in values:
            if value.__class__ is Err:
                return value
        mapping = values[0]
        try:
            if len(values) == 3:
                return insert_entry(mapping, values[1], plain(values[2]))
            if not isinstance(values[1], dict):
                raise no_overload("cel.@mapInsert", *values)
            for key, value in values[1].items():
                mapping = insert_entry(mapping, unmap_key(key), value)
        except CelRuntimeError as failure:
            return Err(str(failure))
        return mapping

    # Aggregates and folds

    def _list(self, node: ListExpr, scope: dict[str, Any]) -> Any:
        value = self._elements(node, scope)
        self._charge(LIST_COST)  # also for an element that is an error
        return value

    def _elements(self, node: ListExpr, scope: dict[str, Any]) -> Any:
        result: list[Any] = []
        for index, element in enumerate(node.elements):
            value = self.evaluate(element, scope)
            if value.__class__ is Err:
                return value
            if index in node.optional:
                if value.__class__ is not Optional:
                    return Err(
                        f"cannot initialize optional list element from non-optional value"
                        f" {shown(value)}"
                    )
                if not value.present:
                    continue
                value = value.value
            result.append(plain(value))
        return result

    def _map(self, node: MapExpr, scope: dict[str, Any]) -> Any:
        value = self._entries(node, scope)
        self._charge(MAP_COST)
        return value

    def _entries(self, node: MapExpr, scope: dict[str, Any]) -> Any:
        result: dict[Any, Any] = {}
        for entry in node.entries:
            key = self.evaluate(entry.key, scope)
            if key.__class__ is Err:
                return key
            value = self.evaluate(entry.value, scope)
            if value.__class__ is Err:
                return value
            if entry.optional:
                if value.__class__ is not Optional:
                    return Err(
                        f"cannot initialize optional entry '{shown(key)}' from non-optional value"
                        f" {shown(value)}"
                    )
                if not value.present:
                    result.pop(map_key(key), None)
                    continue
                value = value.value
            if key.__class__ is bytes:
                raise CelRuntimeError(UNHASHABLE.format("types.Bytes"))
            try:
                result[map_key(key)] = plain(value)
            except TypeError:
                return Err(f"unsupported key type: {type_name(key)}")
        return result

    def _fold(self, node: Comprehension, scope: dict[str, Any]) -> Any:
        items = self.evaluate(node.iter_range, scope)
        if items.__class__ is Err:
            return items
        steps = visited(items, two=bool(node.iter_var2))
        if steps.__class__ is Err:
            return steps
        inner = {**scope, node.accu_var: Lazy(scope, node.accu_init)}
        accu_name = node.accu_var
        for first, second in steps:
            if self._deadline is not None and time.monotonic() >= self._deadline:
                message = "operation interrupted: context deadline exceeded"
                raise CelInterruptedError(message)
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


_SPECIAL: Final[dict[str, Callable[[Interpreter, Call, dict[str, Any]], Any]]] = {
    "_&&_": Interpreter._logical,  # noqa: SLF001 - its own methods
    "_||_": Interpreter._logical,  # noqa: SLF001
    "_?_:_": Interpreter._conditional,  # noqa: SLF001
    "_==_": Interpreter._equality,  # noqa: SLF001
    "_!=_": Interpreter._equality,  # noqa: SLF001
    "_[_]": Interpreter._attribute,  # noqa: SLF001
    "_[?_]": Interpreter._attribute,  # noqa: SLF001
    "_?._": Interpreter._attribute,  # noqa: SLF001
    "@in": Interpreter._in,  # noqa: SLF001
    "@not_strictly_false": Interpreter._not_strictly_false,  # noqa: SLF001
    "cel.@mapInsert": Interpreter._insert,  # noqa: SLF001
}


def interpret(interpreter: Interpreter, node: Node, scope: dict[str, Any]) -> Any:
    """`Interpreter.run`, where nesting beyond what Python can do is an error of the expression."""
    try:
        return interpreter.run(node, scope)
    except RecursionError:
        message = "expression is nested too deeply to be evaluated"
        raise CelRuntimeError(message) from None
