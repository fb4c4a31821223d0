"""From the rules of the grammar to syntax tree nodes: operators, fields, methods, indices."""

from __future__ import annotations

from typing import Any, Final

from lark import Token

from reference_allocator.cel.ast import Call, Entry, Ident, Literal, Node, Select, StructExpr
from reference_allocator.cel.parser.helper import at, limited, report, sized
from reference_allocator.cel.parser.macros import MacroError, expand
from reference_allocator.cel.runtime.values import INT_MIN

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
        function = "@in" if operator == "in" else f"_{operator}_"
        call = Call(at(operator), function, [left, right])
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


def is_token(item: Any, text: str) -> bool:
    """Whether a child is the token with this text."""
    return isinstance(item, Token) and item == text


class MemberRules:
    """A method per rule of members."""

    def field(self, children: list[Any]) -> tuple[int, str]:
        """A field's position and name, without the quotes of a quoted one."""
        token = children[0]
        name = str(token)
        return at(token), name[1:-1] if token.type == "ESC_IDENT" else name

    def member_dot(self, children: list[Any]) -> Node:
        """``a.b`` and ``a.?b``."""
        operand, dot, *optional, (offset, name) = children
        if optional:
            field = Literal(offset, name)
            call = Call(at(dot), "_?._", [operand, field])
            return sized(call, (operand,), counted=True)
        return sized(Select(at(dot), operand, name), (operand,), counted=True)

    def member_dot_arg(self, children: list[Any]) -> Node:
        """``a.f(b)``."""
        operand, _, name, opening, *rest = children
        return self.build_call(at(opening), str(name), operand, rest[0] if len(rest) > 1 else [])

    def member_index(self, children: list[Any]) -> Node:
        """``a[b]`` and ``a[?b]``."""
        operand, opening, *optional, index, _ = children
        function = "_[?_]" if optional else "_[_]"
        call = Call(at(opening), function, [operand, index])
        return sized(call, (operand,), (index,), counted=True)

    def member_object(self, children: list[Any]) -> Node:
        """``a.b{c: d}``."""
        operand, opening, *rest = children
        names: list[str] = []
        node = operand
        while isinstance(node, Select) and not node.test_only:
            names.append(node.field)
            node = node.operand
        if not isinstance(node, Ident):
            return report(at(opening), "Syntax error: mismatched input '{'")
        entries = rest[0] if len(rest) > 1 and isinstance(rest[0], list) else []
        struct = StructExpr(at(opening), ".".join([node.name, *reversed(names)]), entries)
        return sized(struct, (operand,), [entry.value for entry in entries])

    def optfield(self, children: list[Any]) -> tuple[bool, Node]:
        """``c`` or ``?c``, before the colon of a message's field."""
        *optional, (offset, name) = children
        return bool(optional), Literal(offset, name)

    def mapinits(self, children: list[Any]) -> list[Entry]:
        """The entries of a map or the fields of a message."""
        items = [child for child in children if not is_token(child, ",")]
        entries = []
        for (optional, key), colon, value in zip(items[::3], items[1::3], items[2::3], strict=True):
            entries.append(Entry(at(colon), key, value, optional=optional))
        return entries

    fieldinits = mapinits

    def build_call(self, offset: int, name: str, target: Node | None, args: list[Node]) -> Node:
        """A call, or what the macro stands for."""
        try:
            expanded = expand(offset, name, target, args)
        except MacroError as error:
            return report(error.node.offset, str(error))
        call = Call(offset, name, args, target) if expanded is None else expanded
        inner = () if target is None else (target,)
        return sized(call, inner, args, counted=target is not None)
