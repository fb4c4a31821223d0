"""Checks of literals that come after the type check (cel-go ``cel/validator.go``).

A literal duration, timestamp or pattern must be valid, the elements of a list or map literal must
be of one type, and the arguments of ``format`` must fit its clauses.
"""

from __future__ import annotations

from collections.abc import Iterator

from reference_allocator.cel.ast import (
    Call,
    Comprehension,
    Entry,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from reference_allocator.cel.checker.format_validator import check_format
from reference_allocator.cel.errors import CelRuntimeError, Issue
from reference_allocator.cel.library.dispatch import implementation
from reference_allocator.cel.library.strings import RegexError, compile_regex
from reference_allocator.cel.types import CelType


def _children(node: Node) -> Iterator[Node]:
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case ListExpr():
            yield from node.elements
        case MapExpr() | StructExpr():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case Comprehension():
            yield node.iter_range
            yield node.accu_init
            yield node.condition
            yield node.step
            yield node.result


def validate(root: Node) -> list[Issue]:
    """What is wrong with the literals of a checked expression."""
    issues: list[Issue] = []
    formats: list[Issue] = []
    pending = [(root, False)]
    while pending:
        node, exempt = pending.pop()
        if isinstance(node, Call):
            issues += _literal_argument(node)
            if node.function == "format" and "string_format" in node.overloads:
                formats = check_format(node) + formats  # cel-go starts inside
        elif not exempt and isinstance(node, ListExpr):
            issues += _list(node)
        elif not exempt and isinstance(node, MapExpr):
            issues += _entries(node.entries)
        inside = exempt or (isinstance(node, Call) and node.function == "format")
        pending += [(child, inside) for child in _children(node)]
    return issues + formats


def _literal_argument(node: Call) -> list[Issue]:
    if not node.args or not isinstance(node.args[0], Literal):
        return []
    argument = node.args[0]
    try:
        if node.function == "matches" and isinstance(argument.value, str):
            compile_regex(argument.value)
        elif node.function in ("duration", "timestamp"):
            implementation(node.function, node.overloads)(argument.value)
    except (CelRuntimeError, RegexError):
        return [Issue(argument.offset, f"invalid {node.function} argument")]
    return []


def _mismatch(node: Node, expected: CelType, found: CelType) -> Issue:
    return Issue(node.offset, f"expected type '{expected.text}' but found '{found.text}'")


def _element_type(node: Node, *, optional: bool) -> CelType:
    return node.type.params[0] if optional and node.type.params else node.type


def _list(node: ListExpr) -> list[Issue]:
    expected: CelType | None = None
    for index, element in enumerate(node.elements):
        found = _element_type(element, optional=index in node.optional)
        if expected is None:
            expected = found
        elif found != expected:
            return [_mismatch(element, expected, found)]
    return []


def _entries(entries: list[Entry]) -> list[Issue]:
    issues = []
    key_type: CelType | None = None
    value_type: CelType | None = None
    for entry in entries:
        value = _element_type(entry.value, optional=entry.optional)
        if key_type is None or value_type is None:
            key_type, value_type = entry.key.type, value
            continue
        if entry.key.type != key_type:
            issues.append(_mismatch(entry.key, key_type, entry.key.type))
        if value != value_type:
            issues.append(_mismatch(entry.value, value_type, value))
    return issues
