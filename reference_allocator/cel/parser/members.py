"""From the parser's rules for members to syntax tree nodes: fields, methods, indices, messages."""

from __future__ import annotations

from typing import Any

from lark import Token

from reference_allocator.cel.ast import Call, Entry, Ident, Literal, Node, Select, StructExpr
from reference_allocator.cel.parser.helper import at, report, sized
from reference_allocator.cel.parser.macros import MacroError, expand


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
