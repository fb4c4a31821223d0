"""Helpers for building the syntax tree: positions, errors, the limits of depth.

The limits are cel-go's: a rule of its grammar may be open 250 times at once, and its visitor goes
down 250 levels of binary operators and members.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from typing import Final

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from reference_allocator.cel.ast import Literal, Node
from reference_allocator.cel.errors import Issue

MAX_DEPTH: Final = 250


class ParseError(Exception):
    """The text is not an expression; ``issues`` says where and why."""

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__(issues[0].message)
        self.issues = issues


class _State(threading.local):
    """The issues that one parse collects; per thread, because the parser object is shared."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []


STATE = _State()


def offset_of(token: Token) -> int:
    """Return where a token begins, in code points from the start of the source."""
    return token.start_pos or 0


def report(offset: int, message: str) -> Node:
    """Record an issue; the returned node stands for the place and goes unused."""
    STATE.issues.append(Issue(offset, message))
    return Literal(offset, None)


def set_depths(
    node: Node, inner: Sequence[Node], expressions: Sequence[Node] = (), *, counted: bool = False
) -> Node:
    """Return the node with the depths set that cel-go's parser limits.

    Args:
        node: the node.
        inner: its children that are not expressions of their own.
        expressions: its children that the grammar calls an expression: in brackets, as arguments.
        counted: whether cel-go's visitor counts the node as a level (binary operators, members).

    Raises ParseError: see `check_depths`.
    """
    levels = nesting = 0
    relations = calcs = 1
    for child in inner:
        levels = max(levels, child.levels)
        nesting = max(nesting, child.nesting)
        relations = max(relations, child.relations)
        calcs = max(calcs, child.calcs)
    for child in expressions:
        levels = max(levels, child.levels)
        nesting = max(nesting, child.nesting + 1)
        relations = max(relations, child.relations + 1)
        calcs = max(calcs, child.calcs + 1)
    node.levels = levels + counted
    node.nesting, node.relations, node.calcs = nesting, relations, calcs
    return check_depths(node)


def check_depths(node: Node) -> Node:
    """Return the node; raise ParseError if a rule of the grammar is open too often in it."""
    if node.nesting >= MAX_DEPTH or node.relations > MAX_DEPTH or node.calcs > MAX_DEPTH:
        raise ParseError([Issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")])
    return node


_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING,"
    " BYTES, IDENTIFIER}"
)
_CLOSING: Final = {"RPAR": ")", "RSQB": "]", "RBRACE": "}", "COLON": ":"}


def _end_issue(source: str, token: Token, accepted: Iterable[str]) -> Issue | None:
    """Return the issue of a text behind a whole expression, if there is one.

    One token too many is taken out (``singleTokenDeletion``). A dot before digits begins a number.
    """
    offset = token.start_pos or 0
    fraction = _FRACTION.match(source, offset - 1) if offset else None
    if fraction is not None:
        offset, text = offset - 1, fraction[0]
    elif "$END" in accepted and token.type != "$END":
        text = str(token)
    else:
        return None
    word = "mismatched" if source[offset + len(text) :].strip() else "extraneous"
    return Issue(offset, f"Syntax error: {word} input '{text}' expecting <EOF>")


_FRACTION: Final = re.compile(r"\.[0-9]+([eE][+-]?[0-9]+)?")


def syntax_issue(source: str, error: UnexpectedInput) -> Issue:
    """Return the issue of a text that is not an expression.

    cel-go's parser, ANTLR, names all that it expected at the first place that does not fit. Here
    only issues of the most common mistakes do: an operand or a bracket that is missing.
    """
    if isinstance(error, UnexpectedCharacters):
        offset = error.pos_in_stream or 0
        offending_text = source[offset : offset + 1]
        return Issue(offset, f"Syntax error: token recognition error at: '{offending_text}'")
    assert isinstance(error, UnexpectedToken)
    accepted = error.accepts or error.expected
    if (issue := _end_issue(source, error.token, accepted)) is not None:
        return issue
    closing = ", ".join(f"'{_CLOSING[name]}'" for name in _CLOSING if name in accepted)
    expected = closing or (_OPERAND if "LPAR" in accepted else "")
    offset, offending_text = error.token.start_pos or 0, str(error.token)
    if error.token.type == "$END":
        offset, offending_text = len(source), "<EOF>"
    expecting = f" expecting {expected}" if expected else ""
    return Issue(offset, f"Syntax error: mismatched input '{offending_text}'{expecting}")
