"""Functions of lists and maps: sizes, slices, sorting, sums, sets.

Source: cel-go ``ext/lists.go``, ``ext/sets.go``; ``k8s.io/apiserver/pkg/cel/library/lists.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any, Final

from reference_allocator.cel.errors import CelCostError, CelRuntimeError
from reference_allocator.cel.runtime import equality, values
from reference_allocator.cel.runtime.arithmetic import add
from reference_allocator.cel.runtime.conversions import show_value
from reference_allocator.cel.runtime.maps import MISSING, find, map_key, unmap_key

MAX_ATTRIBUTE_VALUES: Final = 48
"""The most values of one device (resource.k8s.io/v1 ResourceSliceMaxAttributeValuesPerDevice)."""

_RANGE_LIMIT: Final = 1_000_000
_WITH_PARAMETERS: Final = {"list": "list(dyn)", "map": "map(dyn, dyn)"}
_COMPARABLE: Final = (bool, int, values.UInt, float, str, bytes, values.Duration, values.Timestamp)


def size(value: Any) -> int:
    """Evaluate ``size()`` of a text, bytes, list or map."""
    if value.__class__ in (str, bytes, list) or isinstance(value, dict):
        return len(value)
    # Those two take calls themselves (cel-go's ReceiverType), and do not name the function.
    raise (
        equality.no_overload()
        if isinstance(value, (values.Duration, values.Timestamp))
        else equality.no_overload("size")
    )


def _slice_list(items: list[Any], start: int, end: int) -> list[Any]:
    call = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        message = f"{call}, negative indexes not supported"
    elif start > end:
        message = f"{call}, start index must be less than or equal to end index"
    elif end > len(items):
        message = f"{call}, list is length {len(items)}"
    else:
        return items[start:end]
    raise CelRuntimeError(message)


def flatten(items: Any, *levels: Any) -> list[Any]:
    """Evaluate ``flatten()``, which checks its arguments itself (``DisableTypeGuards``)."""
    depth = levels[0] if levels else 1
    if items.__class__ is not list or depth.__class__ is not int:
        names = map(values.type_name, (items, *levels))
        receiver, *arguments = (_WITH_PARAMETERS.get(name, name) for name in names)
        raise CelRuntimeError(f"{equality.NO_OVERLOAD}: {receiver}.flatten({', '.join(arguments)})")
    if depth < 0:
        raise CelRuntimeError("level must be non-negative")
    result = items
    while depth > 0 and any(item.__class__ is list for item in result):
        opened: list[Any] = []
        for item in result:
            if item.__class__ is list:
                opened += item
            else:
                opened.append(item)
        result, depth = opened, depth - 1
    return result


def _lists_range(count: int) -> list[int]:
    if count < 0:
        raise CelRuntimeError(f"lists.range: size must be non-negative, got {count}")
    if count > _RANGE_LIMIT:
        raise CelRuntimeError(f"lists.range: size {count} exceeds maximum allowed ({_RANGE_LIMIT})")
    return list(range(count))


def unlimited_range(count: int) -> list[int]:
    """Evaluate ``lists.range`` as up to 1.36, where only the cost limit ends it.

    Raises CelCostError: the list would be beyond any cost limit, and beyond what fits into memory.
    """
    if count > _RANGE_LIMIT:
        raise CelCostError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _distinct(items: list[Any]) -> list[Any]:
    keys = equality.plain_keys(items)
    if keys is not None:
        first: dict[Any, Any] = {}
        for key, item in zip(keys, items, strict=True):
            first.setdefault(key, item)
        return list(first.values())
    result: list[Any] = []
    for item in items:
        if not equality.list_contains(result, item):
            result.append(item)
    return result


def sort_by_keys(items: list[Any], keys: list[Any]) -> list[Any]:
    """Return the items in the order of their keys. Raises CelRuntimeError: keys have no order.

    Items with equal keys stay in order. Go's ``sort.Slice`` promises that of no more than twelve.
    """
    if len(items) != len(keys):
        raise CelRuntimeError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list,"
            f" but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    if keys[0].__class__ not in _COMPARABLE:
        raise CelRuntimeError("list elements must be comparable")
    if any(key.__class__ is not keys[0].__class__ for key in keys):
        raise CelRuntimeError("list elements must have the same type")
    if keys[0].__class__ in (values.Duration, values.Timestamp):
        keys = [key.nanos for key in keys]
    return [items[index] for index in sorted(range(len(keys)), key=keys.__getitem__)]


def _as_optional(items: list[Any]) -> values.Optional:
    """Return the one item of a slice as an optional value."""
    return values.Optional(items[0], present=True) if items else values.Optional(present=False)


def _is_sorted(items: list[Any]) -> bool:
    for item in items:
        if item.__class__ not in _COMPARABLE:
            raise equality.no_overload()
    return all(_compare_or_zero(left, right) <= 0 for left, right in pairwise(items))


def _compare_or_zero(left: Any, right: Any) -> int:
    try:
        return equality.compare(left, right)
    except CelRuntimeError:
        return 0


def _make_extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def extreme(items: list[Any]) -> Any:
        if not items:
            raise CelRuntimeError(f"{name} called on empty list")
        best = items[0]
        for index, item in enumerate(items):
            if item.__class__ not in _COMPARABLE:
                raise equality.no_overload()
            if index and _compare_or_zero(best, item) == sign:
                best = item
        return best

    return extreme


def _make_sum(zero: Any) -> Callable[[list[Any]], Any]:
    return lambda items: reduce(add, items, zero)


def _index_of(items: list[Any], item: Any) -> int:
    indices = (
        index for index, element in enumerate(items) if equality.equal_or_false(element, item)
    )
    return next(indices, -1)


def _last_index_of(items: list[Any], item: Any) -> int:
    reversed_index = _index_of(items[::-1], item)
    return -1 if reversed_index < 0 else len(items) - 1 - reversed_index


def _includes(target: Any, item: Any) -> bool:
    if target.__class__ is list:
        return any(equality.equal_or_false(element, item) for element in target)
    return equality.equal_or_false(target, item)


def includes_values(target: Any, item: Any) -> bool:
    """Evaluate ``includes`` of 1.36, which looks only at `MAX_ATTRIBUTE_VALUES` elements."""
    if target.__class__ is list and len(target) > MAX_ATTRIBUTE_VALUES:
        if _includes(target[:MAX_ATTRIBUTE_VALUES], item):
            return True
        raise CelRuntimeError(
            "'includes' function cannot be applied to lists longer than"
            f" {MAX_ATTRIBUTE_VALUES} values"
        )
    return _includes(target, item)


def _sets_contains(items: list[Any], part: list[Any]) -> bool:
    keys, keys_of_part = equality.plain_keys(items), equality.plain_keys(part)
    if keys is not None and keys_of_part is not None:
        return set(keys_of_part) <= set(keys)
    return all(equality.list_contains(items, item) for item in part)


def _sets_intersects(items: list[Any], other: list[Any]) -> bool:
    keys, keys_of_other = equality.plain_keys(items), equality.plain_keys(other)
    if keys is not None and keys_of_other is not None:
        return not set(keys_of_other).isdisjoint(keys)
    return any(equality.list_contains(other, item) for item in items)


def insert_entry(mapping: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    """Return a copy of the map with one more entry. Raises CelRuntimeError: it has the key."""
    if find(mapping, key) is not MISSING:
        raise CelRuntimeError(f"insert failed: key {show_value(key)} already exists")
    return {**mapping, map_key(key): value}


def _insert_map(mapping: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        mapping = insert_entry(mapping, unmap_key(key), value)
    return mapping


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "distinct": _distinct,
    "first": lambda items: _as_optional(items[:1]),
    "last": lambda items: _as_optional(items[-1:]),
    "reverse": lambda items: items[::-1],
    "slice": _slice_list,
    "isSorted": _is_sorted,
    "min": _make_extreme("min", 1),
    "max": _make_extreme("max", -1),
    "sort": lambda items: sort_by_keys(items, items),
    "@sortByAssociatedKeys": sort_by_keys,
    "list_int_sum_int": _make_sum(0),
    "list_uint_sum_uint": _make_sum(values.UInt(0)),
    "list_double_sum_double": _make_sum(0.0),
    "list_duration_sum_duration": _make_sum(values.Duration(0)),
    "lists_range": _lists_range,
    "lists_range@1.36": unlimited_range,
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_includes_dyn_dyn": _includes,
    "dra_includes_dyn_dyn": includes_values,
    "sets.contains": _sets_contains,
    "sets.equivalent": lambda a, b: _sets_contains(a, b) and _sets_contains(b, a),
    "sets.intersects": _sets_intersects,
    "@mapInsert_map_key_value": insert_entry,
    "@mapInsert_map_map": _insert_map,
}
