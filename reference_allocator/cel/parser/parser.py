"""From source text to syntax tree, with the limits that keep hostile input cheap."""

from __future__ import annotations

from typing import Any

from lark.exceptions import UnexpectedInput

from reference_allocator.cel.ast import Node
from reference_allocator.cel.errors import Issue
from reference_allocator.cel.parser.builder import BUILDER
from reference_allocator.cel.parser.grammar import build_parser
from reference_allocator.cel.parser.helper import MAX_DEPTH, STATE, ParseError
from reference_allocator.cel.parser.syntax_errors import syntax_issues

__all__ = ["ParseError", "parse"]


def parse(source: str) -> Node:
    """The syntax tree of an expression, macros expanded.

    Raises:
        ParseError: no expression, an ill-formed literal or macro, or nested too deeply.
    """
    STATE.issues = []
    try:
        node: Any = build_parser(BUILDER).parse(source)
    except UnexpectedInput as error:
        raise ParseError([*STATE.issues, *syntax_issues(source, error)]) from None
    if STATE.issues:
        raise ParseError(STATE.issues)
    if node.levels > MAX_DEPTH:
        raise ParseError([Issue(-1, "max recursion depth exceeded")])
    assert isinstance(node, Node)
    return node
