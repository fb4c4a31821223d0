"""From the parser's rules for operators to syntax tree nodes."""

from __future__ import annotations

from typing import Any, Final

from reference_allocator.cel.ast import Call, Literal, Node
from reference_allocator.cel.parser.helper import at, limited, report, sized
from reference_allocator.cel.runtime.values import INT_MIN

_OPERATORS: Final = {
    "<": "_<_",
    "<=": "_<=_",
    ">": "_>_",
    ">=": "_>=_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
    "+": "_+_",
    "-": "_-_",
    "*": "_*_",
    "/": "_/_",
    "%": "_%_",
}
_CALCS: Final = frozenset("+-*/%")


class OperatorRules:
    """A method per rule of operators.

    ``sign`` of a node remembers that it is an unparenthesised chain of signs, because ``!!x`` is
    ``x`` and ``-!x`` is not an expression.
    """

    def expr(self, children: list[Any]) -> Node:
        """``a ? b : c``."""
        condition, question, yes, _, no = children
        call = Call(at(question), "_?_:_", [condition, yes, no])
        sized(call, (condition, yes, no), counted=True)
        call.nesting = max(call.nesting, no.nesting + 1)
        return limited(call)

    def conditionalor(self, children: list[Any]) -> Node:
        """``a || b``."""
        return self._chain("_||_", children)

    def conditionaland(self, children: list[Any]) -> Node:
        """``a && b``."""
        return self._chain("_&&_", children)

    def _chain(self, function: str, children: list[Any]) -> Node:
        left, operator, right = children
        if isinstance(left, Call) and left.function == function and left.sign == "chain":
            left.args.append(right)
            return sized(left, (left, right))
        call = Call(at(operator), function, [left, right])
        call.sign = "chain"
        return sized(call, (left, right))

    def relation(self, children: list[Any]) -> Node:
        """``a < b``, ``a + b`` and the like."""
        left, operator, right = children
        call = Call(at(operator), _OPERATORS[str(operator)], [left, right])
        sized(call, (left, right), counted=True)
        if str(operator) in _CALCS:
            call.calcs = max(call.calcs, right.calcs + 1)
        else:
            call.relations = max(call.relations, right.relations + 1)
        return limited(call)

    addition = multiplication = relation

    def unary(self, children: list[Any]) -> Node:
        """``!a`` and ``-a``."""
        token, operand = children
        sign = str(token)
        if operand.sign[:1] in "!-" and operand.sign and operand.sign[0] != sign:
            return report(operand.offset, f"Syntax error: extraneous input '{operand.sign[0]}'")
        if sign == "-" and operand.sign == "literal":  # the lexer took the second sign
            return self._positive(operand)
        if operand.sign == sign:  # an odd chain becomes an even one: no operation
            inner: Node = operand.args[0]
            inner.sign = sign * 2
            return inner
        call = Call(at(token), "!_" if sign == "!" else "-_", [operand])
        call.sign = sign
        return sized(call, (operand,))

    def _positive(self, operand: Literal) -> Node:
        """``--1``, where the inner sign belongs to the literal."""
        if operand.value == INT_MIN and operand.value.__class__ is int:
            return report(operand.offset, "invalid int literal")
        literal = Literal(operand.offset, -operand.value)
        literal.sign = "--"
        return literal
