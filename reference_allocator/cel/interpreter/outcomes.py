"""Results of single steps of an evaluation: errors as values, absent fields, growing lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from reference_allocator.cel.ast import NOT_FOLDED, Call, Literal, Node
from reference_allocator.cel.runtime import values
from reference_allocator.cel.runtime.conversions import shown
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


def has_constant_pattern(node: Call, operands: list[Node]) -> bool:
    """Whether cel-go compiles the call's regular expression once, beforehand."""
    if node.function not in ("matches", "find", "findAll") or len(operands) < 2:
        return False
    pattern = operands[1]
    return isinstance(pattern, Literal) or pattern.folded is not NOT_FOLDED


def as_value(value: Any, *, optional: bool) -> Any:
    """What the end of a chain is as a value."""
    if value.__class__ is Err or not optional:
        return value
    return (
        values.Optional(present=False) if value is ABSENT else values.Optional(value, present=True)
    )


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
