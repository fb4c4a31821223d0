"""Estimated costs of cel-go's own functions and operators (``checker/cost.go``, functionCost)."""

from __future__ import annotations

from typing import Final

from reference_allocator.cel.cost.functions import Operand
from reference_allocator.cel.cost.names import ORDERED
from reference_allocator.cel.cost.ranges import (
    MAX,
    REGEX_FACTOR,
    STRING_FACTOR,
    UNKNOWN,
    Range,
    fixed,
)

ADDITIONS: Final = ("add_string", "add_bytes", "add_list")
_ONE: Final = fixed(1)


def estimate_operator(
    function: str, overload: str, target: Operand | None, args: list[Operand]
) -> tuple[Range, Range | None]:
    """The cost without the arguments, and the size of the result if it is known."""
    sizes = [arg.size or UNKNOWN for arg in args]
    receiver = UNKNOWN if target is None else target.size or UNKNOWN
    scan = [size.scaled(STRING_FACTOR) for size in sizes]
    if overload == "string_format" and target is not None:
        return receiver.scaled(STRING_FACTOR), None
    if overload == "string_to_bytes":
        return scan[0], Range(sizes[0].low, sizes[0].high * 4 % (MAX + 1))
    if overload == "bytes_to_string":
        return scan[0], Range(sizes[0].low // 4, sizes[0].high)
    if overload == "strings_quote":
        high = (sizes[0].high * 2 + 2) % (MAX + 1)
        return scan[0], Range((sizes[0].low + 2) % (MAX + 1), high)
    if function in ("startsWith", "endsWith"):
        return scan[0], None
    if overload == "in_list":
        return sizes[1].scaled(1), None
    if overload in ("matches", "matches_string"):
        text, pattern = (receiver, sizes[0]) if target is not None else (sizes[0], sizes[1])
        cost = text.plus(_ONE).scaled(STRING_FACTOR).times(pattern.scaled(REGEX_FACTOR))
        return cost, None
    if overload == "contains_string" and target is not None:
        return receiver.scaled(STRING_FACTOR).times(scan[0]), None
    if overload in ADDITIONS:
        size = sizes[0].plus(sizes[1])
        return (_ONE if overload == "add_list" else size.scaled(STRING_FACTOR)), size
    if overload in ORDERED or overload in ("equals", "not_equals"):
        high = min(sizes[0].high, sizes[1].high)
        return Range(1 if high > 0 else 0, high).scaled(STRING_FACTOR), None
    return _ONE, None
