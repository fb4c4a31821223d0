"""The static check of ``"...".format([...])`` with a literal text and a literal list."""

from __future__ import annotations

from reference_allocator.cel.ast import Call, ListExpr, Literal, MapExpr, Node
from reference_allocator.cel.errors import CelRuntimeError, Issue
from reference_allocator.cel.library.formatting import CLAUSE_ERRORS, parse_clauses
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
        [
            "list",
            "map",
            "int",
            "uint",
            "double",
            "bool",
            "string",
            "timestamp",
            "bytes",
            "duration",
            "type",
            "null",
        ]
    ),
}


def _runtime_name(checked: CelType) -> str:
    return checked.name if checked.nullable else checked.declared.partition("(")[0]


def _misfit(node: Node, letter: str) -> Node | None:
    """The node, or the part of a literal list or map, that the clause does not take."""
    if node.type.kind != "dyn" and node.type.kind not in _ALLOWED[letter]:
        return node
    parts: list[Node] = []
    if letter == "s" and isinstance(node, ListExpr):
        parts = node.elements
    elif letter == "s" and isinstance(node, MapExpr):
        parts = [part for entry in node.entries for part in (entry.key, entry.value)]
    return next((found for part in parts if (found := _misfit(part, letter))), None)


def check_format(node: Call) -> list[Issue]:
    """What is wrong with a call of ``format``, if its text and list are literals."""
    text, values = node.target, node.args[0]
    if not (isinstance(text, Literal) and isinstance(text.value, str)):
        return []
    if not isinstance(values, ListExpr):
        return []
    elements = values.elements
    used = 0
    try:
        for part in parse_clauses(text.value, len(elements)):
            if isinstance(part, str):
                continue
            misfit = _misfit(elements[used], part.letter)
            if misfit is not None:
                message = CLAUSE_ERRORS[part.letter].format(_runtime_name(misfit.type))
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
