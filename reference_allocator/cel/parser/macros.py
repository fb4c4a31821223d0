"""Macros: calls that the parser replaces by folds, as cel-go does (``parser/macro.go``, ``ext/``).

Each expander gets the receiver and the arguments and returns the tree that stands for the call,
or None when the call does not use the macro after all. Everything it adds is reported at the
call's own position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reference_allocator.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
)

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
"""The iteration variable of what ``cel.bind`` becomes: a fold over nothing."""


class MacroError(Exception):
    """The arguments do not fit the macro; ``node`` is the one to blame."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.node = node


def _name(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node, message)
    return node.name


def _iteration_variable(node: Node, message: str) -> str:
    name = _name(node, message)
    if name in (ACCUMULATOR, "__result__"):
        raise MacroError(node, "iteration variable overwrites accumulator variable")
    return name


def _two_variables(first: Node, second: Node) -> tuple[str, str]:
    names = (
        _name(first, "argument must be a simple name"),
        _name(second, "argument must be a simple name"),
    )
    if names[0] == names[1]:
        raise MacroError(second, f"duplicate variable name: {names[0]}")
    for node in (first, second):
        _iteration_variable(node, "")
    return names


def _fold(
    at: int,
    target: Node,
    iter_vars: tuple[str, str],
    init: Node,
    step: Node,
    condition: Node | None = None,
    result: Node | None = None,
) -> Comprehension:
    """A fold to its end, whose value is the accumulator, if not said otherwise."""
    condition = condition or Literal(at, True)
    result = result or Ident(at, ACCUMULATOR)
    return Comprehension(at, target, *iter_vars, ACCUMULATOR, init, condition, step, result)


def _quantifier(
    at: int, macro: str, target: Node, iter_vars: tuple[str, str], predicate: Node
) -> Node:
    def accu() -> Node:
        return Ident(at, ACCUMULATOR)

    if macro == "exists_one":
        more = Call(at, "_+_", [accu(), Literal(at, 1)])
        step = Call(at, "_?_:_", [predicate, more, accu()])
        result = Call(at, "_==_", [accu(), Literal(at, 1)])
        return _fold(at, target, iter_vars, Literal(at, 0), step, result=result)
    every = macro == "all"
    undecided = accu() if every else Call(at, "!_", [accu()])
    condition = Call(at, "@not_strictly_false", [undecided])
    step = Call(at, "_&&_" if every else "_||_", [accu(), predicate])
    return _fold(at, target, iter_vars, Literal(at, every), step, condition)


def _collect(
    at: int,
    target: Node,
    iter_vars: tuple[str, str],
    predicate: list[Node],
    added: Node,
    init: Node | None = None,
) -> Comprehension:
    """A fold that adds something for each element, or for those that satisfy a predicate.

    Args:
        at: where the macro is.
        target: what it is over.
        iter_vars: its variables.
        predicate: of the elements, none for all.
        added: the accumulator with an element added.
        init: the accumulator at first, by default an empty list.
    """
    if predicate:
        added = Call(at, "_?_:_", [predicate[0], added, Ident(at, ACCUMULATOR)])
    return _fold(at, target, iter_vars, init or ListExpr(at, [], frozenset()), added)


def _append(at: int, element: Node) -> Call:
    return Call(at, "_+_", [Ident(at, ACCUMULATOR), ListExpr(at, [element], frozenset())])


def _has(at: int, argument: Node) -> Node:
    if not isinstance(argument, Select):
        raise MacroError(argument, "invalid argument to has() macro")
    return Select(at, argument.operand, argument.field, test_only=True)


def _quantified(macro: str) -> Callable[[int, Node, list[Node]], Node]:
    def expander(at: int, target: Node, args: list[Node]) -> Node:
        if len(args) == 3:
            names = _two_variables(args[0], args[1])
        else:
            names = (_iteration_variable(args[0], "argument must be a simple name"), "")
        return _quantifier(at, macro, target, names, args[-1])

    return expander


def _map(at: int, target: Node, args: list[Node]) -> Comprehension:
    variable = _iteration_variable(args[0], "argument is not an identifier")
    return _collect(at, target, (variable, ""), args[1:-1], _append(at, args[-1]))


def _filter(at: int, target: Node, args: list[Node]) -> Node:
    variable = _iteration_variable(args[0], "argument is not an identifier")
    return _collect(at, target, (variable, ""), args[1:], _append(at, args[0]))


def _transform_list(at: int, target: Node, args: list[Node]) -> Node:
    names = _two_variables(args[0], args[1])
    return _collect(at, target, names, args[2:-1], _append(at, args[-1]))


def _transform_map(at: int, target: Node, args: list[Node]) -> Node:
    names = _two_variables(args[0], args[1])
    insert = [Ident(at, ACCUMULATOR), Ident(at, names[0]), args[-1]]
    added = Call(at, "cel.@mapInsert", insert)
    return _collect(at, target, names, args[2:-1], added, MapExpr(at, []))


def _transform_map_entry(at: int, target: Node, args: list[Node]) -> Node:
    names = _two_variables(args[0], args[1])
    added = Call(at, "cel.@mapInsert", [Ident(at, ACCUMULATOR), args[-1]])
    return _collect(at, target, names, args[2:-1], added, MapExpr(at, []))


def _binding(at: int, name: str, value: Node, body: Node) -> Node:
    nothing = ListExpr(at, [], frozenset())
    condition, step = Literal(at, False), Ident(at, name)
    return Comprehension(at, nothing, UNUSED, "", name, value, condition, step, body)


def _bind(at: int, target: Node, args: list[Node]) -> Node | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    name = _name(args[0], "cel.bind() variable names must be simple identifiers")
    return _binding(at, name, args[1], args[2])


def _opt_map(flat: bool) -> Callable[[int, Node, list[Node]], Node]:
    label = "optFlatMap" if flat else "optMap"

    def expander(at: int, target: Node, args: list[Node]) -> Node:
        name = _name(args[0], f"{label}() variable name must be a simple identifier")
        value = Call(at, "value", [], target)
        body = _binding(at, name, value, args[1])
        present = body if flat else Call(at, "optional.of", [body])
        has_value = Call(at, "hasValue", [], target)
        return Call(at, "_?_:_", [has_value, present, Call(at, "optional.none", [])])

    return expander


def _sort_by(at: int, target: Node, args: list[Node]) -> Node:
    if not isinstance(target, (ListExpr, Select, Ident, Comprehension, Call)):
        message = (
            "sortBy can only be applied to a list, identifier, comprehension, call or select"
            " expression"
        )
        raise MacroError(target, message)
    name = "@__sortBy_input__"
    keys = _map(at, Ident(at, name), args)
    body = Call(at, "@sortByAssociatedKeys", [keys], Ident(at, name))
    return _binding(at, name, target, body)


_RECEIVER: Final[dict[tuple[str, int], Callable[[int, Node, list[Node]], Node | None]]] = {
    ("all", 2): _quantified("all"),
    ("exists", 2): _quantified("exists"),
    ("exists_one", 2): _quantified("exists_one"),
    ("all", 3): _quantified("all"),
    ("exists", 3): _quantified("exists"),
    ("exists_one", 3): _quantified("exists_one"),
    ("existsOne", 3): _quantified("exists_one"),
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map(flat=False),
    ("optFlatMap", 2): _opt_map(flat=True),
    ("sortBy", 2): _sort_by,
}


def expand(at: int, name: str, target: Node | None, args: list[Node]) -> Node | None:
    """What the call ``target.name(args)`` stands for, or None when it is not a macro.

    Raises:
        MacroError: it is one, with arguments that do not fit.
    """
    if target is None:
        return _has(at, args[0]) if (name, len(args)) == ("has", 1) else None
    expander = _RECEIVER.get((name, len(args)))
    return None if expander is None else expander(at, target, args)
