"""What building the syntax tree shares: positions, errors, the limits of depth.

The limits are cel-go's: a rule of its grammar may be open 250 times at once, and its visitor goes
down 250 levels of binary operators and members.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
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
    """What one parse collects; per thread, because the parser object is shared."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []


STATE = _State()


def at(token: Token) -> int:
    return token.start_pos or 0


def report(offset: int, message: str) -> Node:
    """Remember what is wrong; the node that stands for the place goes unused."""
    STATE.issues.append(Issue(offset, message))
    return Literal(offset, None)


def sized(
    node: Node, inner: Sequence[Node], expressions: Sequence[Node] = (), *, counted: bool = False
) -> Node:
    """The node with the depths that cel-go's parser limits.

    Args:
        inner: its parts, where they are not expressions of their own.
        expressions: its parts that the grammar calls an expression: in brackets, as arguments.
        counted: whether cel-go's visitor counts the node as a level (binary operators, members).
    """
    levels = nesting = 0
    relations = calcs = 1
    for part in inner:
        levels = max(levels, part.levels)
        nesting = max(nesting, part.nesting)
        relations = max(relations, part.relations)
        calcs = max(calcs, part.calcs)
    for part in expressions:
        levels = max(levels, part.levels)
        nesting = max(nesting, part.nesting + 1)
        relations = max(relations, part.relations + 1)
        calcs = max(calcs, part.calcs + 1)
    node.levels = levels + counted
    node.nesting, node.relations, node.calcs = nesting, relations, calcs
    return limited(node)


def limited(node: Node) -> Node:
    """The node; raises ParseError if a rule of the grammar is open too often at once in it."""
    if node.nesting >= MAX_DEPTH or node.relations > MAX_DEPTH or node.calcs > MAX_DEPTH:
        raise ParseError([Issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")])
    return node


_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING,"
    " BYTES, IDENTIFIER}"
)
_CLOSING: Final = {"RPAR": ")", "RSQB": "]", "RBRACE": "}", "COLON": ":"}


def syntax_issue(source: str, error: UnexpectedInput) -> Issue:
    """The complaint about a text that is not an expression.

    cel-go's parser, ANTLR, names all that it expected at the first place that does not fit. Here
    that is said of the most common mistakes: an operand or a bracket that is missing.
    """
    if isinstance(error, UnexpectedCharacters):
        offset = error.pos_in_stream or 0
        found = source[offset : offset + 1]
        return Issue(offset, f"Syntax error: token recognition error at: '{found}'")
    assert isinstance(error, UnexpectedToken)
    accepted = error.accepts or error.expected
    closing = ", ".join(f"'{_CLOSING[name]}'" for name in _CLOSING if name in accepted)
    expected = closing or (_OPERAND if "LPAR" in accepted else "")
    offset, found = error.token.start_pos or 0, str(error.token)
    if error.token.type == "$END":
        offset, found = len(source), "<EOF>"
    what = f" expecting {expected}" if expected else ""
    return Issue(offset, f"Syntax error: mismatched input '{found}'{what}")
