"""Checks of literals that come after the type check (cel-go ``cel/validator.go``).

A literal duration, timestamp or pattern must be valid, the elements of a list or map literal must
be of one type, and the arguments of ``format`` must fit its clauses.
"""

from __future__ import annotations

from collections.abc import Iterator

from reference_allocator.cel import ast
from reference_allocator.cel.errors import CelRuntimeError, Issue
from reference_allocator.cel.library.dispatch import find_implementation
from reference_allocator.cel.library.formatting import CLAUSE_ERRORS, parse_clauses
from reference_allocator.cel.library.strings import RegexError, compile_regex
from reference_allocator.cel.types import CelType

_NUMBERS = frozenset({"int", "uint"})
_ALLOWED = {
    "d": _NUMBERS,
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": _NUMBERS | {"bool"},
    "x": _NUMBERS | {"string", "bytes"},
    "X": _NUMBERS | {"string", "bytes"},
    "o": _NUMBERS,
    "s": frozenset(
        """
            list map int uint double bool string timestamp bytes duration type null
        """.split()
    ),
}


def _runtime_name(checked: CelType) -> str:
    return checked.name if checked.nullable else checked.declared.partition("(")[0]


def _find_misfit(node: ast.Node, letter: str) -> ast.Node | None:
    """Return the node, or the item of a literal list or map, that the clause does not take."""
    if node.type.kind != "dyn" and node.type.kind not in _ALLOWED[letter]:
        return node
    items: list[ast.Node] = []
    if letter == "s" and isinstance(node, ast.ListExpr):
        items = node.elements
    elif letter == "s" and isinstance(node, ast.MapExpr):
        items = [item for entry in node.entries for item in (entry.key, entry.value)]
    return next((misfit for item in items if (misfit := _find_misfit(item, letter))), None)


def check_format(node: ast.Call) -> list[Issue]:
    """Return the issues of a call of ``format``, if its text and list are literals."""
    text, values = node.target, node.args[0]
    if not (isinstance(text, ast.Literal) and isinstance(text.value, str)):
        return []
    if not isinstance(values, ast.ListExpr):
        return []
    elements = values.elements
    used = 0
    try:
        for clause in parse_clauses(text.value, len(elements)):
            if isinstance(clause, str):
                continue
            misfit = _find_misfit(elements[used], clause.letter)
            if misfit is not None:
                message = CLAUSE_ERRORS[clause.letter].format(_runtime_name(misfit.type))
                return [Issue(misfit.offset, f"error during formatting: {message}")]
            used += 1
    except CelRuntimeError as error:
        return [Issue(node.offset, str(error))]
    if len(elements) > used:
        message = (
            f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
        )
        return [Issue(node.offset, message)]
    return []


def _list_children(node: ast.Node) -> Iterator[ast.Node]:
    match node:
        case ast.Select():
            yield node.operand
        case ast.Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case ast.ListExpr():
            yield from node.elements
        case ast.MapExpr() | ast.StructExpr():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case ast.Comprehension():
            yield node.iter_range
            yield node.accu_init
            yield node.condition
            yield node.step
            yield node.result


def validate(root: ast.Node) -> list[Issue]:
    """Return the issues of the literals of a checked expression."""
    issues: list[Issue] = []
    formats: list[Issue] = []
    pending = [(root, False)]
    while pending:
        node, exempt = pending.pop()
        if isinstance(node, ast.Call):
            issues += _check_literal_argument(node)
            if node.function == "format" and "string_format" in node.overloads:
                formats = check_format(node) + formats  # cel-go starts inside
        elif not exempt and isinstance(node, ast.ListExpr):
            issues += _check_list(node)
        elif not exempt and isinstance(node, ast.MapExpr):
            issues += _check_entries(node.entries)
        inside = exempt or (isinstance(node, ast.Call) and node.function == "format")
        pending += [(child, inside) for child in _list_children(node)]
    return issues + formats


def _check_literal_argument(node: ast.Call) -> list[Issue]:
    if not node.args or not isinstance(node.args[0], ast.Literal):
        return []
    argument = node.args[0]
    try:
        if node.function == "matches" and isinstance(argument.value, str):
            compile_regex(argument.value)
        elif node.function in ("duration", "timestamp"):
            find_implementation(node.function, node.overloads)(argument.value)
    except (CelRuntimeError, RegexError):
        return [Issue(argument.offset, f"invalid {node.function} argument")]
    return []


def _mismatch(node: ast.Node, expected: CelType, found: CelType) -> Issue:
    return Issue(node.offset, f"expected type '{expected.text}' but found '{found.text}'")


def _element_type(node: ast.Node, *, optional: bool) -> CelType:
    return node.type.params[0] if optional and node.type.params else node.type


def _check_list(node: ast.ListExpr) -> list[Issue]:
    expected: CelType | None = None
    for index, element in enumerate(node.elements):
        element_type = _element_type(element, optional=index in node.optional)
        if expected is None:
            expected = element_type
        elif element_type != expected:
            return [_mismatch(element, expected, element_type)]
    return []


def _check_entries(entries: list[ast.Entry]) -> list[Issue]:
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
