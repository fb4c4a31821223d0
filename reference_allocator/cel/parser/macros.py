"""Macros: calls that the parser replaces by folds, as cel-go does (``parser/macro.go``, ``ext/``).

Each expander gets the receiver and the arguments and returns the tree that stands for the call,
or None when the call does not use the macro after all. Everything it adds is reported at the
call's own position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reference_allocator.cel import ast

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
"""The iteration variable of the fold over nothing that ``cel.bind`` becomes."""


class MacroError(Exception):
    """The arguments do not fit the macro; ``node`` is the one to blame."""

    def __init__(self, node: ast.Node, message: str) -> None:
        super().__init__(message)
        self.node = node


def _read_name(node: ast.Node, message: str) -> str:
    if not isinstance(node, ast.Ident):
        raise MacroError(node, message)
    return node.name


def _read_variable(node: ast.Node, message: str) -> str:
    name = _read_name(node, message)
    if name in (ACCUMULATOR, "__result__"):
        raise MacroError(node, "iteration variable overwrites accumulator variable")
    return name


def _read_two_variables(first: ast.Node, second: ast.Node) -> tuple[str, str]:
    names = (
        _read_name(first, "argument must be a simple name"),
        _read_name(second, "argument must be a simple name"),
    )
    if names[0] == names[1]:
        raise MacroError(second, f"duplicate variable name: {names[0]}")
    for node in (first, second):
        _read_variable(node, "")
    return names


def _make_fold(
    at: int,
    target: ast.Node,
    iter_vars: tuple[str, str],
    init: ast.Node,
    step: ast.Node,
    condition: ast.Node | None = None,
    result: ast.Node | None = None,
) -> ast.Comprehension:
    """Return a fold, by default to its end, whose value is by default the accumulator."""
    condition = condition or ast.Literal(at, True)
    result = result or ast.Ident(at, ACCUMULATOR)
    return ast.Comprehension(at, target, *iter_vars, ACCUMULATOR, init, condition, step, result)


def _make_quantifier(
    at: int, macro: str, target: ast.Node, iter_vars: tuple[str, str], predicate: ast.Node
) -> ast.Node:
    def accu() -> ast.Node:
        return ast.Ident(at, ACCUMULATOR)

    if macro == "exists_one":
        count_one_more = ast.Call(at, "_+_", [accu(), ast.Literal(at, 1)])
        step = ast.Call(at, "_?_:_", [predicate, count_one_more, accu()])
        result = ast.Call(at, "_==_", [accu(), ast.Literal(at, 1)])
        return _make_fold(at, target, iter_vars, ast.Literal(at, 0), step, result=result)
    every = macro == "all"
    undecided = accu() if every else ast.Call(at, "!_", [accu()])
    condition = ast.Call(at, "@not_strictly_false", [undecided])
    step = ast.Call(at, "_&&_" if every else "_||_", [accu(), predicate])
    return _make_fold(at, target, iter_vars, ast.Literal(at, every), step, condition)


def _make_collection(
    at: int,
    target: ast.Node,
    iter_vars: tuple[str, str],
    predicate: list[ast.Node],
    added: ast.Node,
    init: ast.Node | None = None,
) -> ast.Comprehension:
    """Return a fold that adds something for each element, or for those that satisfy a predicate.

    Args:
        predicate: the predicate of the elements, none for all.
        added: the accumulator with an element added.
        init: the accumulator at first, by default an empty list.
    """
    if predicate:
        added = ast.Call(at, "_?_:_", [predicate[0], added, ast.Ident(at, ACCUMULATOR)])
    return _make_fold(at, target, iter_vars, init or ast.ListExpr(at, [], frozenset()), added)


def _make_append(at: int, element: ast.Node) -> ast.Call:
    return ast.Call(
        at, "_+_", [ast.Ident(at, ACCUMULATOR), ast.ListExpr(at, [element], frozenset())]
    )


def _expand_has(at: int, argument: ast.Node) -> ast.Node:
    if not isinstance(argument, ast.Select):
        raise MacroError(argument, "invalid argument to has() macro")
    return ast.Select(at, argument.operand, argument.field, test_only=True)


def _quantifier_expander(macro: str) -> Callable[[int, ast.Node, list[ast.Node]], ast.Node]:
    def expander(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Node:
        if len(args) == 3:
            names = _read_two_variables(args[0], args[1])
        else:
            names = (_read_variable(args[0], "argument must be a simple name"), "")
        return _make_quantifier(at, macro, target, names, args[-1])

    return expander


def _expand_map(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Comprehension:
    variable = _read_variable(args[0], "argument is not an identifier")
    return _make_collection(at, target, (variable, ""), args[1:-1], _make_append(at, args[-1]))


def _expand_filter(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Node:
    variable = _read_variable(args[0], "argument is not an identifier")
    return _make_collection(at, target, (variable, ""), args[1:], _make_append(at, args[0]))


def _expand_transform_list(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Node:
    names = _read_two_variables(args[0], args[1])
    return _make_collection(at, target, names, args[2:-1], _make_append(at, args[-1]))


def _expand_transform_map(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Node:
    names = _read_two_variables(args[0], args[1])
    insert = [ast.Ident(at, ACCUMULATOR), ast.Ident(at, names[0]), args[-1]]
    added = ast.Call(at, "cel.@mapInsert", insert)
    return _make_collection(at, target, names, args[2:-1], added, ast.MapExpr(at, []))


def _expand_transform_map_entry(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Node:
    names = _read_two_variables(args[0], args[1])
    added = ast.Call(at, "cel.@mapInsert", [ast.Ident(at, ACCUMULATOR), args[-1]])
    return _make_collection(at, target, names, args[2:-1], added, ast.MapExpr(at, []))


def _make_binding(at: int, name: str, value: ast.Node, body: ast.Node) -> ast.Node:
    nothing = ast.ListExpr(at, [], frozenset())
    condition, step = ast.Literal(at, False), ast.Ident(at, name)
    return ast.Comprehension(at, nothing, UNUSED, "", name, value, condition, step, body)


def _expand_bind(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Node | None:
    if not (isinstance(target, ast.Ident) and target.name == "cel"):
        return None
    name = _read_name(args[0], "cel.bind() variable names must be simple identifiers")
    return _make_binding(at, name, args[1], args[2])


def _opt_map_expander(flat: bool) -> Callable[[int, ast.Node, list[ast.Node]], ast.Node]:
    label = "optFlatMap" if flat else "optMap"

    def expander(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Node:
        name = _read_name(args[0], f"{label}() variable name must be a simple identifier")
        value = ast.Call(at, "value", [], target)
        body = _make_binding(at, name, value, args[1])
        present = body if flat else ast.Call(at, "optional.of", [body])
        has_value = ast.Call(at, "hasValue", [], target)
        return ast.Call(at, "_?_:_", [has_value, present, ast.Call(at, "optional.none", [])])

    return expander


def _expand_sort_by(at: int, target: ast.Node, args: list[ast.Node]) -> ast.Node:
    if not isinstance(target, (ast.ListExpr, ast.Select, ast.Ident, ast.Comprehension, ast.Call)):
        message = (
            "sortBy can only be applied to a list, identifier, comprehension, call or select"
            " expression"
        )
        raise MacroError(target, message)
    name = "@__sortBy_input__"
    keys = _expand_map(at, ast.Ident(at, name), args)
    body = ast.Call(at, "@sortByAssociatedKeys", [keys], ast.Ident(at, name))
    return _make_binding(at, name, target, body)


_RECEIVER: Final[
    dict[tuple[str, int], Callable[[int, ast.Node, list[ast.Node]], ast.Node | None]]
] = {
    ("all", 2): _quantifier_expander("all"),
    ("exists", 2): _quantifier_expander("exists"),
    ("exists_one", 2): _quantifier_expander("exists_one"),
    ("all", 3): _quantifier_expander("all"),
    ("exists", 3): _quantifier_expander("exists"),
    ("exists_one", 3): _quantifier_expander("exists_one"),
    ("existsOne", 3): _quantifier_expander("exists_one"),
    ("map", 2): _expand_map,
    ("map", 3): _expand_map,
    ("filter", 2): _expand_filter,
    ("transformList", 3): _expand_transform_list,
    ("transformList", 4): _expand_transform_list,
    ("transformMap", 3): _expand_transform_map,
    ("transformMap", 4): _expand_transform_map,
    ("transformMapEntry", 3): _expand_transform_map_entry,
    ("transformMapEntry", 4): _expand_transform_map_entry,
    ("bind", 3): _expand_bind,
    ("optMap", 2): _opt_map_expander(flat=False),
    ("optFlatMap", 2): _opt_map_expander(flat=True),
    ("sortBy", 2): _expand_sort_by,
}


def expand(at: int, name: str, target: ast.Node | None, args: list[ast.Node]) -> ast.Node | None:
    """Return what the call ``target.name(args)`` stands for, or None when it is not a macro.

    Raises MacroError: it is a macro, with arguments that do not fit.
    """
    if target is None:
        return _expand_has(at, args[0]) if (name, len(args)) == ("has", 1) else None
    expander = _RECEIVER.get((name, len(args)))
    return None if expander is None else expander(at, target, args)
