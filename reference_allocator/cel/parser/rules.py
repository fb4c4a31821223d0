"""The syntax tree nodes of the grammar's rules: operators, fields, methods, indices.

A method is named as the rule of `cel.lark` that it is for, as lark demands.
"""

from __future__ import annotations

from typing import Any, Final

from lark import Token

from reference_allocator.cel.ast import Call, Entry, Ident, Literal, Node, Select, StructExpr
from reference_allocator.cel.parser.helper import check_depths, offset_of, report, set_depths
from reference_allocator.cel.parser.macros import MacroError, expand
from reference_allocator.cel.runtime.values import INT_MIN

_CALCS: Final = frozenset("+-*/%")


class OperatorRules:
    """The methods for the rules of operators.

    ``sign`` of a node remembers that it is an unparenthesised chain of signs, because ``!!x`` is
    ``x`` and ``-!x`` is not an expression.
    """

    def expr(self, children: list[Any]) -> Node:
        """Build ``a ? b : c``."""
        condition, question, yes, _, no = children
        call = Call(offset_of(question), "_?_:_", [condition, yes, no])
        set_depths(call, (condition, yes, no), counted=True)
        call.nesting = max(call.nesting, no.nesting + 1)
        return check_depths(call)

    def conditionalor(self, children: list[Any]) -> Node:
        """Build ``a || b``."""
        return self._build_chain("_||_", children)

    def conditionaland(self, children: list[Any]) -> Node:
        """Build ``a && b``."""
        return self._build_chain("_&&_", children)

    def _build_chain(self, function: str, children: list[Any]) -> Node:
        left, operator, right = children
        if isinstance(left, Call) and left.function == function and left.sign == "chain":
            left.args.append(right)
            return set_depths(left, (left, right))
        call = Call(offset_of(operator), function, [left, right])
        call.sign = "chain"
        return set_depths(call, (left, right))

    def relation(self, children: list[Any]) -> Node:
        """Build ``a < b``, ``a + b`` and the like."""
        left, operator, right = children
        function = "@in" if operator == "in" else f"_{operator}_"
        call = Call(offset_of(operator), function, [left, right])
        set_depths(call, (left, right), counted=True)
        if str(operator) in _CALCS:
            call.calcs = max(call.calcs, right.calcs + 1)
        else:
            call.relations = max(call.relations, right.relations + 1)
        return check_depths(call)

    addition = multiplication = relation

    def unary(self, children: list[Any]) -> Node:
        """Build ``!a`` and ``-a``."""
        token, operand = children
        sign = str(token)
        if operand.sign[:1] in "!-" and operand.sign and operand.sign[0] != sign:
            return report(operand.offset, f"Syntax error: extraneous input '{operand.sign[0]}'")
        if sign == "-" and operand.sign == "literal":  # the lexer took the second sign
            return self._negate_literal(operand)
        if operand.sign == sign:  # an odd chain becomes an even one: no operation
            inner: Node = operand.args[0]
            inner.sign = sign * 2
            return inner
        call = Call(offset_of(token), "!_" if sign == "!" else "-_", [operand])
        call.sign = sign
        return set_depths(call, (operand,))

    def _negate_literal(self, operand: Literal) -> Node:
        """Build ``--1``, where the inner sign belongs to the literal."""
        if operand.value == INT_MIN and operand.value.__class__ is int:
            return report(operand.offset, "invalid int literal")
        literal = Literal(operand.offset, -operand.value)
        literal.sign = "--"
        return literal


def is_token(item: Any, text: str) -> bool:
    """Return whether a child is the token with this text."""
    return isinstance(item, Token) and item == text


class MemberRules:
    """The methods for the rules of members."""

    def field(self, children: list[Any]) -> tuple[int, str]:
        """Return a field's position and name, without the quotes of a quoted one."""
        token = children[0]
        name = str(token)
        return offset_of(token), name[1:-1] if token.type == "ESC_IDENT" else name

    def member_dot(self, children: list[Any]) -> Node:
        """Build ``a.b`` and ``a.?b``."""
        operand, dot, *optional, (offset, name) = children
        if optional:
            field = Literal(offset, name)
            call = Call(offset_of(dot), "_?._", [operand, field])
            return set_depths(call, (operand,), counted=True)
        return set_depths(Select(offset_of(dot), operand, name), (operand,), counted=True)

    def member_dot_arg(self, children: list[Any]) -> Node:
        """Build ``a.f(b)``."""
        operand, _, name, opening, *arguments = children
        return self.build_call(
            offset_of(opening), str(name), operand, arguments[0] if len(arguments) > 1 else []
        )

    def member_index(self, children: list[Any]) -> Node:
        """Build ``a[b]`` and ``a[?b]``."""
        operand, opening, *optional, index, _ = children
        function = "_[?_]" if optional else "_[_]"
        call = Call(offset_of(opening), function, [operand, index])
        return set_depths(call, (operand,), (index,), counted=True)

    def member_object(self, children: list[Any]) -> Node:
        """Build ``a.b{c: d}``."""
        operand, opening, *initializers = children
        names: list[str] = []
        node = operand
        while isinstance(node, Select) and not node.test_only:
            names.append(node.field)
            node = node.operand
        if not isinstance(node, Ident):
            return report(offset_of(opening), "Syntax error: mismatched input '{'")
        entries = (
            initializers[0] if len(initializers) > 1 and isinstance(initializers[0], list) else []
        )
        struct = StructExpr(offset_of(opening), ".".join([node.name, *reversed(names)]), entries)
        return set_depths(struct, (operand,), [entry.value for entry in entries])

    def optfield(self, children: list[Any]) -> tuple[bool, Node]:
        """Return whether ``c`` has a question mark, and its name, before a field's colon."""
        *optional, (offset, name) = children
        return bool(optional), Literal(offset, name)

    def mapinits(self, children: list[Any]) -> list[Entry]:
        """Return the entries of a map or the fields of a message."""
        items = [child for child in children if not is_token(child, ",")]
        entries = []
        for (optional, key), colon, value in zip(items[::3], items[1::3], items[2::3], strict=True):
            entries.append(Entry(offset_of(colon), key, value, optional=optional))
        return entries

    fieldinits = mapinits

    def build_call(self, offset: int, name: str, target: Node | None, args: list[Node]) -> Node:
        """Build a call, or what the macro stands for."""
        try:
            expanded = expand(offset, name, target, args)
        except MacroError as error:
            return report(error.node.offset, str(error))
        call = Call(offset, name, args, target) if expanded is None else expanded
        inner = () if target is None else (target,)
        return set_depths(call, inner, args, counted=target is not None)
