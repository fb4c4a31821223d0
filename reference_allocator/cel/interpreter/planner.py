"""The errors of building a program: conversions and patterns of constants.

cel-go computes conversions of constants and compiles constant patterns when it plans a program, so
their errors are compile errors (``interpreter/decorators.go``). Other functions of constants fail
only when they run.
"""

from __future__ import annotations

from typing import Any, Final

from reference_allocator.cel import ast
from reference_allocator.cel.errors import CelInternalError, CelRuntimeError
from reference_allocator.cel.interpreter.attributes import SELECTIONS
from reference_allocator.cel.library.dispatch import find_implementation
from reference_allocator.cel.library.strings import RegexError, compile_regex
from reference_allocator.cel.runtime.maps import KEY_CLASSES, constant_set, map_key
from reference_allocator.cel.runtime.values import UndefinedType, go_type

UNKNOWN: Final = object()
_CONVERSIONS: Final = frozenset(
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"]
)
_PATTERNS: Final = frozenset({"matches", "find", "findAll"})


class InstantiationError(Exception):
    """A constant of the expression is unusable."""


def plan(node: ast.Node) -> Any:
    """Visit an expression in cel-go's order and set ``folded`` of conversions of constants.

    Returns the node's value if it is a constant for cel-go's planner, else `UNKNOWN`.
    Raises InstantiationError: a constant is unusable; names the first.
    """
    match node:
        case ast.Literal():
            return node.value
        case ast.Ident():
            return UNKNOWN if node.constant is None else _plan_constant(node.constant)
        case ast.Select():
            if node.constant is not None:
                return _plan_constant(node.constant)
            plan(node.operand)
            return UNKNOWN
        case ast.Call():
            return _plan_call(node)
        case ast.ListExpr():
            values = [plan(element) for element in node.elements]
            if node.optional or any(value is UNKNOWN for value in values):
                return UNKNOWN
            node.folded = values
            return values
        case ast.MapExpr():
            return _plan_map(node)
        case ast.Comprehension():
            for child in (node.accu_init, node.iter_range, node.condition, node.step, node.result):
                plan(child)
            return UNKNOWN
        case ast.StructExpr():
            for entry in node.entries:
                plan(entry.value)
            return UNKNOWN
        case _:
            return UNKNOWN


def _plan_constant(value: Any) -> Any:
    if value.__class__ is UndefinedType:
        raise InstantiationError(f"reference to undefined type: {value.name}")
    return value


def _plan_map(node: ast.MapExpr) -> Any:
    result: dict[Any, Any] = {}
    is_constant = True
    for entry in node.entries:
        key, value = plan(entry.key), plan(entry.value)
        is_constant = (
            is_constant and key is not UNKNOWN and value is not UNKNOWN and not entry.optional
        )
        if is_constant:
            try:
                result[map_key(key)] = value
            except CelInternalError:  # Go panics here; ours is an error of the evaluation
                is_constant = False
    if not is_constant:
        return UNKNOWN
    node.folded = result
    return result


def _plan_call(node: ast.Call) -> Any:
    operands = node.args if node.target is None else [node.target, *node.args]
    values = [plan(operand) for operand in operands]
    node.implementation = find_implementation(node.function, node.overloads)
    if node.function in _CONVERSIONS and len(values) == 1 and values[0] is not UNKNOWN:
        try:
            node.folded = node.implementation(values[0])
        except CelRuntimeError as error:
            raise InstantiationError(str(error)) from None
        return node.folded
    if node.function in SELECTIONS and values[1] is not UNKNOWN:
        key = values[1]
        if key.__class__ not in KEY_CLASSES:
            raise InstantiationError(f"invalid qualifier type: {go_type(key)}")
    if node.overloads == ("in_list",) and values[1].__class__ is list:
        if not values[1]:
            node.folded = False
            return False
        node.members = constant_set(values[1])
    if node.function in _PATTERNS and len(values) > 1 and isinstance(values[1], str):
        try:
            compile_regex(values[1])
        except RegexError as error:
            raise InstantiationError(str(error)) from None
    return UNKNOWN
