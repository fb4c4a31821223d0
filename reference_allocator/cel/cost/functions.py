"""Estimated costs of calls: library functions, then cel-go's own functions and operators.

Source: ``k8s.io/apiserver/pkg/cel/library/cost.go``, cel-go's ``ext/lists.go``, ``ext/sets.go`` and
``checker/cost.go`` (functionCost). An estimator returns (cost without the arguments, size of the
result), or None to leave the call to the general rules, by which most functions cost 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from reference_allocator.cel.ast import Literal, Node
from reference_allocator.cel.cost import common
from reference_allocator.cel.library.lists import MAX_ATTRIBUTE_VALUES
from reference_allocator.cel.types import CelType

_ONE: Final = common.fixed_range(1)
Estimate = tuple[common.Range, common.Range | None]


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument as far as it is known: where it comes from, its type and its size."""

    path: tuple[str, ...]
    type: CelType
    expr: Node | None
    size: common.Range | None

    def size_or_unknown(self) -> common.Range:
        """Return its size, as far as the value or its path tells."""
        if self.size is not None:
            return self.size
        return common.device_size(self.path) or common.UNKNOWN

    def element_of(self) -> Operand | None:
        """Return an element of the list (or, as upstream has it, a key of the map)."""
        if not self.type.params:
            return None
        path = (*self.path, "@items")
        return Operand(path, self.type.params[0], None, None)


def _literal_int(operand: Operand, default: int) -> int:
    if isinstance(operand.expr, Literal) and operand.expr.value.__class__ is int:
        return max(operand.expr.value, 0)
    return default


def _estimate_list_call(factor: float, size: common.Range) -> Estimate:
    return size.scale(factor).add(_ONE).add(common.fixed_range(common.LIST_COST)), size


def _estimate_sets(factor: float, args: list[Operand]) -> Estimate:
    sizes = args[0].size_or_unknown().multiply(args[1].size_or_unknown())
    return sizes.scale(factor).add(_ONE), None


def _estimate_by_overload(
    overload: str, target: Operand | None, args: list[Operand]
) -> Estimate | None:
    if overload.startswith("list_sets_") and len(args) == 2:
        return _estimate_sets(2 if "equivalent" in overload else 1, args)
    if overload in ("lists_range", "lists_range@1.36") and len(args) == 1:
        return _estimate_list_call(1, common.fixed_range(_literal_int(args[0], common.MAX)))
    if target is None:
        return None
    if overload == "dra_includes_dyn_dyn":  # of 1.36
        return common.Range(0, MAX_ATTRIBUTE_VALUES), None
    size = target.size_or_unknown()
    if overload == "list_slice" and len(args) == 2:
        start, end = _literal_int(args[0], 0), _literal_int(args[1], size.high)
        return _estimate_list_call(1, common.fixed_range((end - start) % (common.MAX + 1)))
    if overload == "list_reverse":
        return _estimate_list_call(1, size)
    if overload in ("list_flatten", "list_flatten_int"):
        depth = _literal_int(args[0], common.MAX) if args else 1
        return _estimate_list_call(float(depth), size)
    if overload == "list_distinct":
        return _estimate_list_call(2.0, size.multiply(size))
    if overload.startswith("list_") and overload.endswith(("_sort", "_sortByAssociatedKeys")):
        keys = size if overload.endswith("_sort") else args[0].size_or_unknown()
        text = overload.startswith(("list_string", "list_bytes"))
        return _estimate_list_call(
            2.0 + (common.STRING_FACTOR if text else 0.0), keys.multiply(keys)
        )
    return None


def _estimate_traversal(function: str, target: Operand) -> Estimate:
    size = target.size_or_unknown()
    element = target.element_of()
    if element is not None:
        cost = _ONE
        if element.type.kind in ("string", "bytes"):
            cost = cost.add(element.size_or_unknown().scale(common.STRING_FACTOR))
        return size.multiply(cost), None
    return (
        size.multiply(_ONE) if function == "includes" else size.scale(common.STRING_FACTOR)
    ), None


def _estimate_replace(size: common.Range, old: common.Range, new: common.Range) -> Estimate:
    if old.low == 0:
        most, kept_most = min(size.high + 1, common.MAX), size.high
    elif new.high <= old.low:
        most, kept_most = 0, size.high
    else:
        most, kept_most = min(math.ceil(float(size.high) / float(old.low)), common.MAX), 0
    if old.high == 0:
        least, kept_least = min(size.low + 1, common.MAX), size.low
    elif old.high <= new.low:
        least, kept_least = 0, size.low
    else:
        least, kept_least = math.ceil(float(size.low) / float(old.high)), 0
    result = common.Range(least, most).multiply(new).add(common.Range(kept_least, kept_most))
    return size.scale(2 * common.STRING_FACTOR), result


def _estimate_join(target: Operand, args: list[Operand]) -> Estimate:
    count = target.size_or_unknown()
    element = target.element_of()
    size = common.fixed_range(0) if element is None else count.multiply(element.size_or_unknown())
    if args:
        gaps = common.Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.add(args[0].size_or_unknown().multiply(gaps))
    return size.scale(common.STRING_FACTOR), size


def _estimate_split(size: common.Range, args: list[Operand]) -> Estimate:
    most = size.high
    if len(args) > 1 and isinstance(args[1].expr, Literal):
        most = args[1].expr.value % (common.MAX + 1)
    return size.scale(2 * common.STRING_FACTOR), common.Range(0, most)


def _estimate_find(size: common.Range, pattern: common.Range) -> Estimate:
    cost = size.add(_ONE).scale(common.STRING_FACTOR).multiply(pattern.scale(common.REGEX_FACTOR))
    return cost, common.Range(0, size.high)


def _estimate_contains(function: str, overload: str, argument: common.Range) -> Estimate:
    address = common.Range(4, 16)
    cost = address.add(address).scale(common.STRING_FACTOR)
    if function == "containsCIDR":
        cost = cost.add(address.scale(common.STRING_FACTOR)).add(_ONE)
    if overload.endswith("_string"):
        cost = cost.add(argument.scale(common.STRING_FACTOR))
    return cost, None


def _estimate_equality(left: Operand, right: Operand) -> Estimate | None:
    if left.type != right.type:
        return None
    name = left.type.name
    if name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
        return _ONE, None
    if name == "kubernetes.NamedFormat":
        return common.Range(1, 64).scale(common.STRING_FACTOR), None
    if name == "kubernetes.URL":
        high = 1 if right.size is None else right.size.high
        return common.Range(1, high).scale(common.STRING_FACTOR), None
    return None


_SCANS: Final = frozenset("cidr isIP isCIDR ip quantity isQuantity semver isSemver".split())
_TRAVERSALS: Final = frozenset("isSorted sum max min indexOf lastIndexOf includes".split())
"""Functions that look at all of a list or string."""
_ORDERED: Final = frozenset(
    f"{order}_{kind}"
    for order in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
)
"""Overloads that compare two texts."""


def estimate_call(
    function: str, overload: str, target: Operand | None, args: list[Operand]
) -> Estimate | None:
    """Return the estimate of a library function; None leaves it to `estimate_operator`."""
    special = _estimate_by_overload(overload, target, args)
    if special is not None:
        return special
    if function == "check":
        return common.fixed_range(350_000), None
    if function == "_==_" and len(args) == 2:
        return _estimate_equality(args[0], args[1])
    if target is not None:
        method_estimate = _estimate_method(function, overload, target, args)
        if method_estimate is not None:
            return method_estimate
    if not args:
        return None
    size = args[0].size_or_unknown()
    if function == "url":
        return size.scale(common.STRING_FACTOR), size
    if function in _SCANS:
        return size.scale(common.STRING_FACTOR), None
    if function == "ip.isCanonical":
        return size.scale(2 * common.STRING_FACTOR), None
    return None


def _estimate_method(
    function: str, overload: str, target: Operand, args: list[Operand]
) -> Estimate | None:
    size = target.size_or_unknown()
    if function in _TRAVERSALS:
        return _estimate_traversal(function, target)
    if function in ("lowerAscii", "upperAscii", "substring", "trim"):
        return size.scale(common.STRING_FACTOR), size
    if function == "split":
        return _estimate_split(size, args)
    if function == "join":
        return _estimate_join(target, args)
    if not args:
        return None
    first = args[0].size_or_unknown()
    if function == "replace" and len(args) >= 2:
        return _estimate_replace(size, first, args[1].size_or_unknown())
    if function in ("find", "findAll"):
        return _estimate_find(size, first)
    if function in ("containsIP", "containsCIDR"):
        return _estimate_contains(function, overload, first)
    if function == "validate":
        return first.scale(common.STRING_FACTOR).scale(128 * common.REGEX_FACTOR), None
    return None


_URL_PARTS: Final = frozenset(
    "getEscapedPath getHost getHostname getPort getQuery getScheme".split()
)
"""Accessors of a URL."""


def estimate_since_1_38(
    function: str, overload: str, target: Operand | None, args: list[Operand]
) -> tuple[common.Range, common.Range | None] | None:
    """Return what 1.38 estimates otherwise than the minors before it; None for all else.

    A part of a URL is no longer than the URL, where its size was unknown (``library/cost.go``), and
    what is multiplied by an unknown size stays unknown (cel-go 0.33, ``common/cost``).
    """
    if target is not None and function in _URL_PARTS:
        size = target.size_or_unknown()
        if function == "getEscapedPath":  # A byte may become three.
            size = size.multiply(common.Range(1, 3))
        return _ONE, size
    if overload == "list_distinct" and target is not None:  # Texts are compared for more.
        is_text = bool(target.type.params) and target.type.params[0].kind in ("string", "bytes")
        size = target.size_or_unknown()
        factor = 2.0 + (common.STRING_FACTOR if is_text else 0.0)
        return _estimate_list_call(factor, size.multiply(size))
    if overload == "list_flatten_int" and isinstance(args[0].expr, Literal):
        if args[0].expr.value < 0 and target is not None:
            return _estimate_list_call(float(common.MAX), target.size_or_unknown())
        return None
    return _estimate_text_since_1_38(overload, target, args)


def _estimate_text_since_1_38(
    overload: str, target: Operand | None, args: list[Operand]
) -> Estimate | None:
    """Return what the standard functions of texts cost since cel-go 0.33 (``standard.go``).

    There an unknown size stays unknown when it is scaled, and no size is beyond 64 bits.
    """
    sizes = [operand.size or common.UNKNOWN for operand in args]
    receiver = common.UNKNOWN if target is None else target.size or common.UNKNOWN
    scans = [_scale_known(size, 10) for size in sizes]
    match overload:
        case "starts_with_string" | "ends_with_string":
            return scans[0], None
        case "string_format":
            return _scale_known(receiver, 10), None
        case "string_to_bytes":
            return scans[0], sizes[0].multiply(common.Range(1, 4))
        case "bytes_to_string":
            return scans[0], common.Range(_scale_known(sizes[0], 4).low, sizes[0].high)
        case "strings_quote":
            return scans[0], sizes[0].multiply(common.Range(1, 2)).add(common.fixed_range(2))
        case "add_string" | "add_bytes":
            size = sizes[0].add(sizes[1])
            return _scale_known(size, 10), size
        case "contains_string":
            return _scale_known(receiver, 10).multiply(scans[0]), None
        case "matches" | "matches_string":
            text, pattern = (sizes[0], sizes[1]) if target is None else (receiver, sizes[0])
            return _scale_known(text.add(_ONE), 10).multiply(_scale_known(pattern, 4)), None
    return None


def _scale_known(size: common.Range, divisor: int) -> common.Range:
    """Return a size divided, rounded up; what has no limit stays without."""
    low, high = (end if end == common.MAX else -(-end // divisor) for end in size)
    return common.Range(low, high)


ADDITIONS: Final = ("add_string", "add_bytes", "add_list")


def estimate_operator(
    function: str, overload: str, target: Operand | None, args: list[Operand]
) -> tuple[common.Range, common.Range | None]:
    """Return the cost without the arguments, and the size of the result if it is known."""
    sizes = [arg.size or common.UNKNOWN for arg in args]
    receiver = common.UNKNOWN if target is None else target.size or common.UNKNOWN
    scan = [size.scale(common.STRING_FACTOR) for size in sizes]
    if overload == "string_format" and target is not None:
        return receiver.scale(common.STRING_FACTOR), None
    if overload == "string_to_bytes":
        return scan[0], common.Range(sizes[0].low, sizes[0].high * 4 % (common.MAX + 1))
    if overload == "bytes_to_string":
        return scan[0], common.Range(sizes[0].low // 4, sizes[0].high)
    if overload == "strings_quote":
        high = (sizes[0].high * 2 + 2) % (common.MAX + 1)
        return scan[0], common.Range((sizes[0].low + 2) % (common.MAX + 1), high)
    if function in ("startsWith", "endsWith"):
        return scan[0], None
    if overload == "in_list":
        return sizes[1].scale(1), None
    if overload in ("matches", "matches_string"):
        text, pattern = (receiver, sizes[0]) if target is not None else (sizes[0], sizes[1])
        cost = (
            text.add(_ONE).scale(common.STRING_FACTOR).multiply(pattern.scale(common.REGEX_FACTOR))
        )
        return cost, None
    if overload == "contains_string" and target is not None:
        return receiver.scale(common.STRING_FACTOR).multiply(scan[0]), None
    if overload in ADDITIONS:
        size = sizes[0].add(sizes[1])
        return (_ONE if overload == "add_list" else size.scale(common.STRING_FACTOR)), size
    if overload in _ORDERED or overload in ("equals", "not_equals"):
        high = min(sizes[0].high, sizes[1].high)
        return common.Range(1 if high > 0 else 0, high).scale(common.STRING_FACTOR), None
    return _ONE, None
