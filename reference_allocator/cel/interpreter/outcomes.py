"""Results of single steps of an evaluation: errors as values, absent fields, growing lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from reference_allocator.cel.ast import NOT_FOLDED, Call, Literal, Node, Select
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.library.dispatch import SINGLETONS
from reference_allocator.cel.runtime import values
from reference_allocator.cel.runtime.conversions import shown
from reference_allocator.cel.runtime.equality import equal
from reference_allocator.cel.runtime.maps import map_keys, unmap_key


@dataclass(slots=True, eq=False)
class Err:
    """An error as a value."""

    message: str


@dataclass(slots=True, eq=False)
class Lazy:
    """The initial value of a fold's accumulator, evaluated once, when it is first read."""

    scope: dict[str, Any]
    value: Node
    known: bool = False
    result: Any = None


ABSENT: Final = object()
SELECTIONS: Final = frozenset({"_[_]", "_[?_]", "_?._"})


def stops_at_errors(node: Call, operands: list[Node]) -> bool:
    """Whether cel-go evaluates the arguments one by one up to the first error.

    It does where a pattern is compiled beforehand, and where the values choose the overload.
    """
    if len(node.overloads) > 1 and node.function not in SINGLETONS:
        return True
    return node.function == "format" or has_constant_pattern(node, operands)


def has_constant_pattern(node: Call, operands: list[Node]) -> bool:
    """Whether cel-go compiles the call's regular expression once, beforehand."""
    if node.function not in ("matches", "find", "findAll") or len(operands) < 2:
        return False
    pattern = operands[1]
    return isinstance(pattern, Literal) or pattern.folded is not NOT_FOLDED


_ADDERS: Final = frozenset(
    f"types.{name}"
    for name in ("Bytes", "Double", "Duration", "Int", "String", "Timestamp", "Uint")
)


def check_tracked(node: Call, args: list[Any]) -> None:
    """cel-go's cost tracker itself fails on some arguments, which ends the whole evaluation."""
    overload = node.overloads[0] if len(node.overloads) == 1 else ""
    keys = 1 if overload.endswith("_sortByAssociatedKeys") else 0
    if overload == "list_distinct" or overload.endswith(("_sort", "_sortByAssociatedKeys")):
        if not isinstance(args[keys], list):
            found = "*types.Err" if args[keys].__class__ is Err else values.go_type(args[keys])
            # Go names the first method that is missing, by the alphabet.
            method = "Contains" if found in _ADDERS else "Add"
            missing = f"is not traits.Lister: missing method {method}"
            raise CelRuntimeError(f"internal error: interface conversion: {found} {missing}")
    elif overload.startswith("list_flatten_int") and args[1].__class__ is not int:
        found = "*types.Err" if args[1].__class__ is Err else values.go_type(args[1])
        message = f"internal error: interface conversion: ref.Val is {found}, not types.Int"
        raise CelRuntimeError(message)


def as_value(value: Any, *, optional: bool) -> Any:
    """What the end of a chain is as a value."""
    if value.__class__ is Err or not optional:
        return value
    return (
        values.Optional(present=False) if value is ABSENT else values.Optional(value, present=True)
    )


def conditional_root(node: Node) -> bool:
    """Whether a chain starts at a ternary, which cel-go does not charge."""
    while True:
        if isinstance(node, Select):
            node = node.operand
        elif isinstance(node, Call) and node.function in SELECTIONS:
            node = node.args[0]
        else:
            return isinstance(node, Call) and node.function == "_?_:_"


def equality_result(function: str, left: Any, right: Any) -> Any:
    """``==`` or ``!=``; only the first reports what cannot be compared."""
    if left.__class__ is Err:
        return left
    if right.__class__ is Err:
        return right
    try:
        same = equal(plain(left), plain(right))
    except CelRuntimeError as failure:
        return Err(str(failure)) if function == "_==_" else True
    return same if function == "_==_" else not same


def plain(value: Any) -> Any:
    """The value, with a list under construction as a list of its own."""
    return list(value) if value.__class__ is values.Growing else value


def list_index(key: Any) -> Any:
    """The index that a value stands for, or an `Err`."""
    if key.__class__ in (int, values.UInt):
        return key
    if key.__class__ is float:
        return (
            int(key) if key.is_integer() else Err(f"unsupported index value {shown(key)} in list")
        )
    return Err(f"unsupported index type '{values.type_name(key)}' in list")


def visited(items: Any, *, two: bool) -> Any:
    """The values of a fold's one or two variables, step by step, or an `Err`."""
    if isinstance(items, list):
        return list(enumerate(items)) if two else [(item, None) for item in items]
    if isinstance(items, dict):
        if two:
            return [(unmap_key(key), value) for key, value in items.items()]
        return [(key, None) for key in map_keys(items)]
    if two:
        return Err(f"unsupported comprehension range type: {values.go_type(items)}")
    return Err(f"got '{values.go_type(items)}', expected iterable type")
