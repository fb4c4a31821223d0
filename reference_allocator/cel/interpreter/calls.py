"""Evaluating calls: operators, functions, and those that do not evaluate all their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reference_allocator.cel.ast import Call, Ident, Node
from reference_allocator.cel.cost.actual import call_cost
from reference_allocator.cel.errors import CelCostError, CelInternalError, CelRuntimeError
from reference_allocator.cel.interpreter import outcomes
from reference_allocator.cel.interpreter.attributes import Evaluation
from reference_allocator.cel.library.dispatch import implementation
from reference_allocator.cel.parser.macros import ACCUMULATOR
from reference_allocator.cel.runtime.equality import NO_OVERLOAD
from reference_allocator.cel.runtime.maps import is_member
from reference_allocator.cel.runtime.values import Growing, Optional


class Calls(Evaluation):
    """Calls, of cel-go's ``interpreter/interpretable.go``."""

    def call(self, node: Call, scope: dict[str, Any]) -> Any:
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(self, node, scope)
        if node.function in ("orValue", "or") and node.target is not None:
            return self._or(node, scope)
        operands = node.args if node.target is None else [node.target, *node.args]
        args: list[Any] = []
        error: outcomes.Err | None = None
        for operand in operands:
            value = self.evaluate(operand, scope)
            args.append(value)
            if value.__class__ is outcomes.Err:
                error = error or value
                if len(operands) > 2 or outcomes.stops_at_errors(node, operands):
                    break  # Go evaluates both sides of a binary call, else it stops here
        result = self.apply(node, operands, args) if error is None else error
        if len(args) == len(operands):
            self._charge_call(node, args, result)
        return result

    def apply(self, node: Call, operands: list[Node], args: list[Any]) -> Any:
        if args and args[0].__class__ is Growing and node.function == "_+_":
            first = operands[0]
            if isinstance(first, Ident) and first.name == ACCUMULATOR and isinstance(args[1], list):
                args[0].extend(args[1])
                return args[0]
        values = [outcomes.plain(arg) for arg in args]
        try:
            return implementation(node.function, node.overloads)(*values)
        except (CelCostError, CelInternalError):
            raise
        except CelRuntimeError as failure:
            text = str(failure)
            named = text.startswith(f"{NO_OVERLOAD}: {node.function}")
            if named and outcomes.has_constant_pattern(node, operands) and args[1].__class__ is str:
                text = NO_OVERLOAD  # the compiled pattern has its own, shorter error
            return outcomes.Err(text)

    def _charge_call(self, node: Call, args: list[Any], result: Any) -> None:
        outcomes.check_tracked(node, args)
        self.charge(call_cost(node.function, node.overloads, args, result))

    def _or(self, node: Call, scope: dict[str, Any]) -> Any:
        assert node.target is not None
        value = self.evaluate(node.target, scope)
        if value.__class__ is outcomes.Err:
            return value
        if value.__class__ is not Optional:
            return outcomes.Err(NO_OVERLOAD)
        if value.present:
            return value.value if node.function == "orValue" else value
        return self.evaluate(node.args[0], scope)

    def _logical(self, node: Call, scope: dict[str, Any]) -> Any:
        decides = node.function == "_||_"
        error: outcomes.Err | None = None
        for term in node.args:
            value = self.evaluate(term, scope)
            if value is decides:
                return value
            if error is None and value.__class__ is not bool:
                error = value if value.__class__ is outcomes.Err else outcomes.Err(NO_OVERLOAD)
        return not decides if error is None else error

    def _conditional(self, node: Call, scope: dict[str, Any]) -> Any:
        branch: Node = node
        while isinstance(branch, Call) and branch.function == "_?_:_":  # a chain nests no deeper
            condition = self.evaluate(branch.args[0], scope)
            if condition.__class__ is outcomes.Err:
                return condition
            if condition.__class__ is not bool:
                return outcomes.Err(NO_OVERLOAD)
            branch = branch.args[1 if condition else 2]
        return self.part(branch, scope)

    def _equality(self, node: Call, scope: dict[str, Any]) -> Any:
        left = self.evaluate(node.args[0], scope)
        right = self.evaluate(node.args[1], scope)
        result = outcomes.equality_result(node.function, left, right)
        self._charge_call(node, [left, right], result)
        return result

    def _in(self, node: Call, scope: dict[str, Any]) -> Any:
        if node.members is not None:
            value = self.evaluate(node.args[0], scope)
            return value if value.__class__ is outcomes.Err else is_member(node.members, value)
        item = self.evaluate(node.args[0], scope)
        container = self.evaluate(node.args[1], scope)
        result = next(
            (value for value in (item, container) if value.__class__ is outcomes.Err), None
        )
        if result is None:
            result = self.apply(node, node.args, [item, container])
        self._charge_call(node, [item, container], result)
        return result

    def _not_strictly_false(self, node: Call, scope: dict[str, Any]) -> Any:
        value = self.evaluate(node.args[0], scope)
        self.charge(1)
        return value is not False


_SPECIAL: Final[dict[str, Callable[[Calls, Call, dict[str, Any]], Any]]] = {
    "_&&_": Calls._logical,  # noqa: SLF001 - its own methods
    "_||_": Calls._logical,  # noqa: SLF001
    "_?_:_": Calls._conditional,  # noqa: SLF001
    "_==_": Calls._equality,  # noqa: SLF001
    "_!=_": Calls._equality,  # noqa: SLF001
    "_[_]": Calls.attribute,
    "_[?_]": Calls.attribute,
    "_?._": Calls.attribute,
    "@in": Calls._in,  # noqa: SLF001
    "@not_strictly_false": Calls._not_strictly_false,  # noqa: SLF001
}
