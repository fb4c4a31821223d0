"""The building of the syntax tree, with the limits that keep hostile input cheap.

Lark calls the builder's methods bottom-up while it parses, so nothing here recurses with the
nesting of the expression; the depth of each node is known when it is built and bounded before
anything that does recurse sees the tree.
"""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput
from platformdirs import user_cache_path

from reference_allocator.cel.ast import Ident, ListExpr, Literal, MapExpr, Node
from reference_allocator.cel.errors import Issue
from reference_allocator.cel.parser import literals
from reference_allocator.cel.parser.helper import (
    MAX_DEPTH,
    STATE,
    ParseError,
    offset_of,
    report,
    set_depths,
    syntax_issue,
)
from reference_allocator.cel.parser.rules import MemberRules, OperatorRules, is_token


@cache
def build_parser(transformer: Any) -> Lark:
    """Return the LALR parser; ``transformer`` gets each rule's children, bottom-up.

    Its tables take a third of a second to compute, more than all else that starts, so lark keeps
    them in the user's cache, one process at a time. A file that is damaged, or of another grammar,
    is written anew; where nothing can be written the tables are computed each time.
    """
    text = Path(__file__).with_name("cel.lark").read_text(encoding="utf-8")
    folder = user_cache_path("dra-conformance") / "cel"
    name = f"parser-{sys.version_info.major}.{sys.version_info.minor}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError:
        return _make_lark(text, transformer, False)
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _make_lark(text, transformer, str(folder / name))


def _make_lark(text: str, transformer: Any, cache: str | bool) -> Lark:
    return Lark(
        text,
        parser="lalr",
        start="expr",
        transformer=transformer,
        keep_all_tokens=True,
        maybe_placeholders=False,
        propagate_positions=False,
        cache=cache,
    )


_RESERVED = frozenset(
    """
        as break const continue else for function if import let loop package namespace
        return var void while
    """.split()
)
_LITERALS: Final[dict[str, Callable[[str], Any]]] = {
    "INT_LIT": literals.parse_int,
    "UINT_LIT": literals.parse_uint,
    "FLOAT_LIT": literals.parse_float,
    "STRING_LIT": literals.parse_string,
    "MLSTRING_LIT": literals.parse_string,
    "BYTES_LIT": literals.parse_bytes,
    "BOOL_LIT": lambda text: text == "true",
    "NULL_LIT": lambda _: None,
}


class _Builder(OperatorRules, MemberRules):
    """A method per grammar rule; each gets its children, tokens included, and returns a node."""

    def _build_ident(self, token: Token, prefix: str, offset: int) -> Node:
        if str(token) in _RESERVED:
            return report(offset, f"reserved identifier: {token}")
        return Ident(offset_of(token), prefix + token)

    def ident(self, children: list[Any]) -> Node:
        return self._build_ident(children[0], "", offset_of(children[0]))

    def dot_ident(self, children: list[Any]) -> Node:
        return self._build_ident(children[1], ".", offset_of(children[0]))

    def ident_arg(self, children: list[Any]) -> Node:
        name, opening, *arguments = children
        return self._build_global_call(name, "", offset_of(name), opening, arguments)

    def dot_ident_arg(self, children: list[Any]) -> Node:
        dot, name, opening, *arguments = children
        return self._build_global_call(name, ".", offset_of(dot), opening, arguments)

    def _build_global_call(
        self, name: Token, prefix: str, offset: int, opening: Token, arguments: list[Any]
    ) -> Node:
        if str(name) in _RESERVED:
            return report(offset, f"reserved identifier: {name}")
        args = arguments[0] if len(arguments) > 1 else []
        return self.build_call(offset_of(opening), prefix + name, None, args)

    def exprlist(self, children: list[Any]) -> list[Node]:
        return children[::2]

    def paren_expr(self, children: list[Any]) -> Node:
        node: Node = children[1]
        node.sign = ""
        return set_depths(node, (), (node,))

    def optexpr(self, children: list[Any]) -> tuple[bool, Node]:
        return len(children) > 1, children[-1]

    def listinit(self, children: list[Any]) -> list[tuple[bool, Node]]:
        return [child for child in children if not is_token(child, ",")]

    def list_lit(self, children: list[Any]) -> Node:
        items = children[1] if isinstance(children[1], list) else []
        optional = frozenset(index for index, (flag, _) in enumerate(items) if flag)
        elements = [item for _, item in items]
        return set_depths(ListExpr(offset_of(children[0]), elements, optional), (), elements)

    def map_lit(self, children: list[Any]) -> Node:
        entries = children[1] if isinstance(children[1], list) else []
        children_of_entries = [child for entry in entries for child in (entry.key, entry.value)]
        return set_depths(MapExpr(offset_of(children[0]), entries), (), children_of_entries)

    def literal(self, children: list[Any]) -> Node:
        token = children[0]
        try:
            literal = Literal(offset_of(token), _LITERALS[token.type](str(token)))
        except literals.LiteralError as error:
            return report(offset_of(token), str(error))
        if token.type in ("INT_LIT", "FLOAT_LIT") and token.startswith("-"):
            literal.sign = "literal"
        return literal


BUILDER: Final = _Builder()


def parse(source: str) -> Node:
    """Return the syntax tree of an expression, macros expanded.

    Raises ParseError: the text is no expression, nested too deeply, or has an ill-formed literal or
    macro.
    """
    STATE.issues = []
    try:
        node: Any = build_parser(BUILDER).parse(source)
    except UnexpectedCharacters as error:
        issues = [*STATE.issues, syntax_issue(source, error)]
        offset = error.pos_in_stream or 0
        if not source[offset + 1 :].strip():  # which the rest is read without
            try:
                parse(f"{source[:offset]} ")
            except ParseError as further:
                issues += (replace(issue, offset=len(source)) for issue in further.issues)
        raise ParseError(issues) from None
    except UnexpectedInput as error:
        raise ParseError([*STATE.issues, syntax_issue(source, error)]) from None
    if STATE.issues:
        raise ParseError(STATE.issues)
    if node.levels > MAX_DEPTH:
        raise ParseError([Issue(-1, "max recursion depth exceeded")])
    assert isinstance(node, Node)
    return node
