"""From the parser's rules to syntax tree nodes.

Lark calls the builder's methods bottom-up while it parses, so nothing here recurses with the
nesting of the expression; the depth of each node is known when it is built and bounded before
anything that does recurse sees the tree. The limits are cel-go's: 250 nested expressions, and 250
levels of binary operators and members.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from lark import Token

from reference_allocator.cel.ast import (
    Call,
    Entry,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from reference_allocator.cel.errors import Issue
from reference_allocator.cel.literals import (
    LiteralError,
    parse_bytes,
    parse_float,
    parse_int,
    parse_string,
    parse_uint,
)
from reference_allocator.cel.macros import MacroError, expand
from reference_allocator.cel.runtime.values import INT_MIN

__all__ = ["BUILDER", "MAX_DEPTH", "STATE", "ParseError"]

MAX_DEPTH: Final = 250

_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_OPERATORS = {
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
_LITERALS: Final[dict[str, Callable[[str], Any]]] = {
    "INT_LIT": parse_int,
    "UINT_LIT": parse_uint,
    "FLOAT_LIT": parse_float,
    "STRING_LIT": parse_string,
    "MLSTRING_LIT": parse_string,
    "BYTES_LIT": parse_bytes,
    "BOOL_LIT": lambda text: text == "true",
    "NULL_LIT": lambda _: None,
}


class ParseError(Exception):
    """The text is no expression; ``issues`` says where and why."""

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__(issues[0].message)
        self.issues = issues


class _State(threading.local):
    """What one parse collects; per thread, because the parser object is shared."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []


STATE = _State()


def _at(token: Token) -> int:
    return token.start_pos or 0


def _is(item: Any, text: str) -> bool:
    return isinstance(item, Token) and item == text


def _report(offset: int, message: str) -> Node:
    STATE.issues.append(Issue(offset, message))
    return Literal(offset, None)


def _sized(
    node: Node, inner: Sequence[Node], expressions: Sequence[Node] = (), *, counted: bool = False
) -> Node:
    """The node with the two depths that cel-go's parser limits.

    Args:
        node: the new node.
        inner: its parts, where they are no expressions of their own.
        expressions: its parts that the grammar calls an expression: in brackets, as arguments.
        counted: whether cel-go's visitor counts the node as a level (binary operators, members).
    """
    parts = [*inner, *expressions]
    node.levels = counted + max((part.levels for part in parts), default=0)
    node.nesting = max(
        max((part.nesting for part in inner), default=0),
        max((part.nesting + 1 for part in expressions), default=0),
    )
    if node.nesting >= MAX_DEPTH:
        raise ParseError([Issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")])
    return node


class _Builder:
    """A method per grammar rule; each gets its children, tokens included, and returns a node.

    ``sign`` of a node remembers that it is an unparenthesised chain of signs, because ``!!x`` is
    ``x`` and ``-!x`` is no expression.
    """

    # Operators

    def expr(self, children: list[Any]) -> Node:
        condition, question, yes, _, no = children
        call = Call(_at(question), "_?_:_", [condition, yes, no])
        return _sized(call, (condition, yes), (no,), counted=True)

    def conditionalor(self, children: list[Any]) -> Node:
        return self._chain("_||_", children)

    def conditionaland(self, children: list[Any]) -> Node:
        return self._chain("_&&_", children)

    def _chain(self, function: str, children: list[Any]) -> Node:
        left, operator, right = children
        if isinstance(left, Call) and left.function == function and left.sign == "chain":
            left.args.append(right)
            return _sized(left, (left, right))
        call = Call(_at(operator), function, [left, right])
        call.sign = "chain"
        return _sized(call, (left, right))

    def _operand(self, children: list[Any]) -> tuple[Node, Token]:
        return children[0], children[1]

    relation_lt = relation_le = relation_gt = relation_ge = _operand
    relation_eq = relation_ne = relation_in = _operand
    addition_add = addition_sub = _operand
    multiplication_mul = multiplication_div = multiplication_mod = _operand

    def _binary(self, children: list[Any]) -> Node:
        (left, operator), right = children
        call = Call(_at(operator), _OPERATORS[str(operator)], [left, right])
        return _sized(call, (left, right), counted=True)

    relation = addition = multiplication = _binary

    def unary_not(self, children: list[Any]) -> Token:
        token: Token = children[0]
        return token

    unary_neg = unary_not

    def unary(self, children: list[Any]) -> Node:
        token, operand = children
        sign = str(token)
        if operand.sign[:1] in "!-" and operand.sign and operand.sign[0] != sign:
            return _report(operand.offset, f"Syntax error: extraneous input '{operand.sign[0]}'")
        if sign == "-" and operand.sign == "literal":  # the lexer took the second sign
            return self._positive(operand)
        if operand.sign == sign:  # an odd chain becomes an even one: no operation
            inner: Node = operand.args[0]
            inner.sign = sign * 2
            return inner
        call = Call(_at(token), "!_" if sign == "!" else "-_", [operand])
        call.sign = sign
        return _sized(call, (operand,))

    def _positive(self, operand: Literal) -> Node:
        """``--1``, where the inner sign belongs to the literal."""
        if operand.value == INT_MIN and operand.value.__class__ is int:
            return _report(operand.offset, "invalid int literal")
        literal = Literal(operand.offset, -operand.value)
        literal.sign = "--"
        return literal

    # Members

    def field(self, children: list[Any]) -> tuple[int, str]:
        token = children[0]
        name = str(token)
        return _at(token), name[1:-1] if token.type == "ESC_IDENT" else name

    def member_dot(self, children: list[Any]) -> Node:
        operand, dot, *optional, (offset, name) = children
        if optional:
            field = Literal(offset, name)
            call = Call(_at(dot), "_?._", [operand, field])
            return _sized(call, (operand,), counted=True)
        return _sized(Select(_at(dot), operand, name), (operand,), counted=True)

    def member_dot_arg(self, children: list[Any]) -> Node:
        operand, _, name, opening, *rest = children
        return self._call(_at(opening), str(name), operand, rest[0] if len(rest) > 1 else [])

    def member_index(self, children: list[Any]) -> Node:
        operand, opening, *optional, index, _ = children
        function = "_[?_]" if optional else "_[_]"
        call = Call(_at(opening), function, [operand, index])
        return _sized(call, (operand,), (index,), counted=True)

    def member_object(self, children: list[Any]) -> Node:
        operand, opening, *rest = children
        names: list[str] = []
        node = operand
        while isinstance(node, Select) and not node.test_only:
            names.append(node.field)
            node = node.operand
        if not isinstance(node, Ident):
            return _report(_at(opening), "Syntax error: mismatched input '{'")
        entries = rest[0] if len(rest) > 1 and isinstance(rest[0], list) else []
        struct = StructExpr(_at(opening), ".".join([node.name, *reversed(names)]), entries)
        return _sized(struct, (operand,), [entry.value for entry in entries])

    def optfield(self, children: list[Any]) -> tuple[bool, Node]:
        *optional, (offset, name) = children
        return bool(optional), Literal(offset, name)

    def fieldinits(self, children: list[Any]) -> list[Entry]:
        return self.mapinits(children)

    def mapinits(self, children: list[Any]) -> list[Entry]:
        items = [child for child in children if not _is(child, ",")]
        entries = []
        for (optional, key), colon, value in zip(items[::3], items[1::3], items[2::3], strict=True):
            entries.append(Entry(_at(colon), key, value, optional=optional))
        return entries

    # Primaries

    def _ident(self, token: Token, prefix: str, at: int) -> Node:
        if str(token) in _RESERVED:
            return _report(at, f"reserved identifier: {token}")
        return Ident(_at(token), prefix + token)

    def ident(self, children: list[Any]) -> Node:
        return self._ident(children[0], "", _at(children[0]))

    def dot_ident(self, children: list[Any]) -> Node:
        return self._ident(children[1], ".", _at(children[0]))

    def ident_arg(self, children: list[Any]) -> Node:
        name, opening, *rest = children
        return self._global_call(name, "", opening, rest)

    def dot_ident_arg(self, children: list[Any]) -> Node:
        _, name, opening, *rest = children
        return self._global_call(name, ".", opening, rest)

    def _global_call(self, name: Token, prefix: str, opening: Token, rest: list[Any]) -> Node:
        if str(name) in _RESERVED:
            return _report(_at(name), f"reserved identifier: {name}")
        args = rest[0] if len(rest) > 1 else []
        return self._call(_at(opening), prefix + name, None, args)

    def _call(self, at: int, name: str, target: Node | None, args: list[Node]) -> Node:
        try:
            expanded = expand(at, name, target, args)
        except MacroError as error:
            return _report(error.node.offset, str(error))
        call = Call(at, name, args, target) if expanded is None else expanded
        inner = () if target is None else (target,)
        return _sized(call, inner, args, counted=target is not None)

    def exprlist(self, children: list[Any]) -> list[Node]:
        return children[::2]

    def paren_expr(self, children: list[Any]) -> Node:
        node: Node = children[1]
        node.sign = ""
        return _sized(node, (), (node,))

    def optexpr(self, children: list[Any]) -> tuple[bool, Node]:
        return len(children) > 1, children[-1]

    def listinit(self, children: list[Any]) -> list[tuple[bool, Node]]:
        return [child for child in children if not _is(child, ",")]

    def list_lit(self, children: list[Any]) -> Node:
        items = children[1] if isinstance(children[1], list) else []
        optional = frozenset(index for index, (flag, _) in enumerate(items) if flag)
        elements = [item for _, item in items]
        return _sized(ListExpr(_at(children[0]), elements, optional), (), elements)

    def map_lit(self, children: list[Any]) -> Node:
        entries = children[1] if isinstance(children[1], list) else []
        parts = [part for entry in entries for part in (entry.key, entry.value)]
        return _sized(MapExpr(_at(children[0]), entries), (), parts)

    def literal(self, children: list[Any]) -> Node:
        token = children[0]
        try:
            literal = Literal(_at(token), _LITERALS[token.type](str(token)))
        except LiteralError as error:
            return _report(_at(token), str(error))
        if token.type in ("INT_LIT", "FLOAT_LIT") and token.startswith("-"):
            literal.sign = "literal"
        return literal


BUILDER: Final = _Builder()
