"""What a call costs when it is evaluated, by the size of its arguments.

Source: cel-go ``interpreter/runtimecost.go``, ``ext/lists.go``, ``ext/sets.go`` and
``k8s.io/apiserver/pkg/cel/library/cost.go``.
"""

from __future__ import annotations

import math
from typing import Any, Final

from reference_allocator.api.quantity import Quantity
from reference_allocator.api.semver import Semver
from reference_allocator.cel.cost.common import (
    CONSTANT,
    LIST_COST,
    ORDERED,
    REGEX_FACTOR,
    STRING_FACTOR,
    STRUCT_COST,
    TRAVERSALS,
)
from reference_allocator.cel.library.named_formats import NamedFormat
from reference_allocator.cel.library.network import CIDR, IP
from reference_allocator.cel.library.urls import URL
from reference_allocator.cel.runtime.values import Optional

_UNIT_EQUALITY: Final = (Quantity, Semver, IP, CIDR, URL, NamedFormat)
_SCANS: Final = frozenset(
    """
        url lowerAscii upperAscii substring trim cidr isIP isCIDR quantity isQuantity semver
        isSemver
    """.split()
)


def _size(value: Any) -> int:
    if value.__class__ in (str, bytes) or isinstance(value, (list, dict)):
        return len(value)
    if value.__class__ is IP:
        return int(value.address.max_prefixlen) // 8
    if value.__class__ is CIDR:
        return math.ceil(value.bits / 8)
    return 1


def _any_size(value: Any) -> int:
    if value.__class__ is Optional and value.present:
        return _any_size(value.value)
    return _size(value)


def _scan(size: int, factor: float = STRING_FACTOR) -> int:
    return math.ceil(float(size) * factor)


def _traversal(value: Any) -> int:
    if value.__class__ is str:
        return int(len(value.encode(errors="surrogatepass")) * STRING_FACTOR)
    if value.__class__ is bytes:
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(item) for key, item in value.items())
    return 1


def _unguarded(cost: float, base: int) -> int:
    """A cost up to 1.36, negative or too large: Go's conversion makes it 64 bits without sign."""
    whole = int(cost) if -(2.0**63) < cost < 2.0**64 else 2**63
    return (whole + base) % 2**64


def _lists(overload: str, args: list[Any], result: Any) -> int | None:
    base = 1 + LIST_COST
    if overload == "dra_includes_dyn_dyn":  # of 1.36
        return 1
    if overload in ("list_slice", "lists_range", "lists_range@1.36", "list_reverse"):
        return _size(result) + base
    if overload in ("list_flatten", "list_flatten_int"):
        depth = args[1] if len(args) == 2 and args[1].__class__ is int else 1
        factor = 1.0 if depth < 0 else float(depth)
        return int(float(_size(args[0])) * factor) + base
    if overload == "list_flatten_int@1.36":
        return _unguarded(float(_size(args[0])) * float(args[1]), base)
    if overload == "list_distinct" or overload.endswith(("_sort", "_sortByAssociatedKeys")):
        keys = args[1] if overload.endswith("Keys") else args[0]
        count = _size(keys)
        text = isinstance(keys, list) and count and keys[0].__class__ in (str, bytes)
        return int(float(count * count) * (2.0 + (STRING_FACTOR if text else 0.0))) + base
    if overload.startswith("list_sets_"):
        factor = 2 if "equivalent" in overload else 1
        return 1 + _size(args[0]) * _size(args[1]) * factor
    return None


def _library(function: str, overload: str, args: list[Any], result: Any) -> int | None:
    if function in CONSTANT or overload == "cidr_ip":
        return 1
    if function == "check":
        return 350_000
    if function in TRAVERSALS:
        return _traversal(args[0])
    if function in _SCANS or (function == "ip" and args):
        return _scan(_size(args[0]))
    if function in ("replace", "split", "ip.isCanonical"):
        return _scan(_size(args[0]), 2 * STRING_FACTOR)
    if function == "join":
        return _scan(_size(result), 2 * STRING_FACTOR)
    if function in ("find", "findAll"):
        return _scan(1 + _size(args[0])) * _scan(_size(args[1]), REGEX_FACTOR)
    if function in ("containsIP", "containsCIDR"):
        cost = _scan(2 * _size(args[0]))
        if function == "containsCIDR":
            cost += _scan(_size(args[0])) + 1
        return cost + (_scan(_size(args[1])) if overload.endswith("_string") else 0)
    if function == "validate" and isinstance(args[0], NamedFormat):
        return _scan(1 + _size(args[1])) * _scan(args[0].regex_size, REGEX_FACTOR)
    if function in ("fieldSelector", "labelSelector"):
        length = _size(args[1])
        return LIST_COST + _scan(length) + _scan(_scan(length, 0.5), float(LIST_COST + STRUCT_COST))
    if function == "_==_" and isinstance(args[0], _UNIT_EQUALITY):
        return 1
    return None


def call_cost(function: str, overloads: tuple[str, ...], args: list[Any], result: Any) -> int:
    """The cost of a call, without that of its arguments.

    Args:
        overloads: the overloads that the checker found; costs by overload need just one.
        args: values, receiver first; whatever stands for an error counts as size 1.
    """
    overload = overloads[0] if len(overloads) == 1 else ""
    cost = _lists(overload, args, result)
    if cost is None:
        cost = _library(function, overload, args, result)
    if cost is not None:
        return cost
    if overload in ("starts_with_string@1.36", "ends_with_string@1.36"):
        return _scan(_any_size(args[0]))
    if overload in ("starts_with_string", "ends_with_string"):
        return _scan(_any_size(args[1]))
    if overload in ("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"):
        return _scan(_any_size(args[0]))
    if overload == "in_list":
        return _any_size(args[1])
    if overload in ORDERED or overload in ("equals", "not_equals"):
        return _scan(min(_any_size(args[0]), _any_size(args[1])))
    if overload in ("add_string", "add_bytes"):
        return _scan(_any_size(args[0]) + _any_size(args[1]))
    if overload in ("matches", "matches_string"):
        return _scan(1 + _any_size(args[0])) * _scan(_any_size(args[1]), REGEX_FACTOR)
    if overload == "contains_string":
        return _scan(_any_size(args[0])) * _scan(_any_size(args[1]))
    return 1
