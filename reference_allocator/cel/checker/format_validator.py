"""The static check of ``"...".format([...])`` with a literal text and a literal list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


class _Misfit(Exception):  # noqa: N818 - a signal
    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node


def _runtime_name(checked: CelType) -> str:
    return checked.name if checked.nullable else checked.declared.partition("(")[0]


def _verify(node: Node, clause: str) -> None:
    if node.type.kind != "dyn" and node.type.kind not in _ALLOWED[clause]:
        raise _Misfit(node)
    if clause != "s":
        return
    if isinstance(node, ListExpr):
        for element in node.elements:
            _verify(element, clause)
    elif isinstance(node, MapExpr):
        for entry in node.entries:
            _verify(entry.key, clause)
            _verify(entry.value, clause)


def check_format(node: Call) -> list[Issue]:
    """What is wrong with a call of ``format``, if its text and list are literals."""
    text, values = node.target, node.args[0]
    if not (isinstance(text, Literal) and isinstance(text.value, str)):
        return []
    if not isinstance(values, ListExpr):
        return []
    elements = values.elements
    used = 0

    def clause(kind: str, _precision: int | None) -> Callable[[Any], str]:
        def verify(index: Any) -> str:
            _verify(elements[index], kind)
            return ""

        return verify

    def argument(index: int) -> int:
        nonlocal used
        used += 1
        return index

    kinds: list[str] = []

    def remember(kind: str, precision: int | None) -> Callable[[Any], str]:
        kinds.append(kind)
        return clause(kind, precision)

    try:
        parse_clauses(text.value, len(elements), argument, remember)
    except _Misfit as misfit:
        message = CLAUSE_ERRORS[kinds[-1]].format(_runtime_name(misfit.node.type))
        return [Issue(misfit.node.offset, f"error during formatting: {message}")]
    except CelRuntimeError as error:
        return [Issue(node.offset, str(error))]
    if len(elements) > used:
        message = (
            f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
        )
        return [Issue(node.offset, message)]
    return []
