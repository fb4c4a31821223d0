"""The most that an expression can cost, whatever the device (cel-go ``checker/cost.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from reference_allocator.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from reference_allocator.cel.cost.functions import Operand, estimate_call
from reference_allocator.cel.cost.ranges import (
    LIST_COST,
    MAP_COST,
    MAX,
    REGEX_FACTOR,
    STRING_FACTOR,
    STRUCT_COST,
    UNKNOWN,
    Range,
    fixed,
)
from reference_allocator.cel.macros import ACCUMULATOR
from reference_allocator.cel.types import CelType

__all__ = ["estimate"]

_ZERO: Final = fixed(0)
_ONE: Final = fixed(1)
_NOTHING: Final = Range(MAX, 0)
_SHARED: Final = 3
"""The length of a path whose Go slice has room for one more: there the paths of a fold's key and
value share memory, and the key has the value's size (``pushIterKey``, ``pushIterValue``)."""
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_ORDERED: Final = frozenset(
    f"{order}_{kind}"
    for order in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
)


class _Entries(NamedTuple):
    """Sizes of the keys and values of a list or map."""

    kind: str
    key: Range
    value: Range


class _Local(NamedTuple):
    """A variable of a fold."""

    path: tuple[str, ...]
    size: Range | None
    entries: _Entries | None


def _is_scalar(checked: CelType) -> bool:
    if checked.kind in _SCALARS:
        return True
    return checked.name == "optional_type" and _is_scalar(checked.params[0])


def _union(first: _Entries | None, second: _Entries | None) -> _Entries | None:
    if first is None or second is None:
        return None
    return _Entries(first.kind, first.key.union(second.key), first.value.union(second.value))


class _Estimator:
    def __init__(self, by_path: Callable[[tuple[str, ...]], Range | None]) -> None:
        self.by_path = by_path
        self.paths: dict[int, tuple[str, ...]] = {}
        self.sizes: dict[int, Range] = {}
        self.entries: dict[int, _Entries] = {}
        self.locals: dict[str, list[_Local]] = {}

    # What is known about a node

    def local(self, node: Node) -> _Local | None:
        if isinstance(node, Ident) and self.locals.get(node.name):
            return self.locals[node.name][-1]
        return None

    def path(self, node: Node) -> tuple[str, ...]:
        local = self.local(node)
        return self.paths.get(id(node), ()) if local is None else local.path

    def size(self, node: Node) -> Range | None:
        known = self.sizes.get(id(node))
        if known is not None:
            return known
        if isinstance(node, Literal):
            return fixed(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        if isinstance(node, ListExpr):
            return fixed(len(node.elements))
        if isinstance(node, MapExpr):
            return fixed(len(node.entries))
        found = self.by_path(self.path(node))
        if found is not None:
            self.sizes[id(node)] = found
            return found
        if _is_scalar(node.type):
            return _ONE
        local = self.local(node)
        return None if local is None else local.size

    def size_or_unknown(self, node: Node) -> Range:
        return self.size(node) or UNKNOWN

    def entry_sizes(self, node: Node) -> _Entries | None:
        known = self.entries.get(id(node))
        if known is not None:
            return known
        local = self.local(node)
        return None if local is None else local.entries

    def operand(self, node: Node) -> Operand:
        path = self.path(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        return Operand(path, node.type, node, self.size(node), self.by_path)

    # Costs

    def cost(self, node: Node) -> Range:
        match node:
            case Literal():
                return _ZERO
            case Ident():
                local = self.local(node)
                self.paths[id(node)] = (node.name,) if local is None else local.path
                return _ONE
            case Select():
                return self.select(node)
            case Call():
                return self.call(node)
            case ListExpr():
                return self.list_literal(node)
            case MapExpr() | StructExpr():
                return self.map_literal(node)
            case Comprehension():
                return self.bind(node) if node.macro == "bind" else self.fold(node)
            case _:
                raise AssertionError(type(node))

    def select(self, node: Select) -> Range:
        if node.constant is not None:
            return _ONE
        total = self.cost(node.operand)
        if node.test_only:
            return total  # Kubernetes charges nothing for has()
        if node.operand.type.kind in ("map", "struct", "param"):
            total = total.plus(_ONE)
        self.paths[id(node)] = (*self.path(node.operand), node.field)
        return total

    def list_literal(self, node: ListExpr) -> Range:
        total, item = fixed(LIST_COST), _NOTHING if node.elements else Range(0, 0)
        for element in node.elements:
            total = total.plus(self.cost(element))
            item = item.union(self.size_or_unknown(element))
        self.entries[id(node)] = _Entries("list", _ONE, item)
        return total

    def map_literal(self, node: MapExpr | StructExpr) -> Range:
        struct = isinstance(node, StructExpr)
        total = fixed(STRUCT_COST if struct else MAP_COST)
        key = value = _NOTHING if node.entries else Range(0, 0)
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self.size_or_unknown(entry.key))
            value = value.union(self.size_or_unknown(entry.value))
        if not struct:
            self.entries[id(node)] = _Entries("map", key, value)
        return total

    # Folds

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def push_value(self, name: str, node: Node) -> None:
        self.push(name, _Local(self.path(node), self.size(node), self.entry_sizes(node)))

    def push_part(self, name: str, node: Node, *, key: bool, two: bool) -> None:
        """A fold's variable: the key or value of an entry, or what a single one stands for."""
        entries = self.entry_sizes(node)
        kind = node.type.kind if entries is None else entries.kind
        is_list = kind == "list"
        if not two:
            key = not is_list
        size = None
        if entries is not None:
            size = entries.key if key else entries.value
        names = ("@indices", "@items") if is_list else ("@keys", "@values")
        part = names[0 if key else 1]
        path = self.path(node)
        if two and key and len(path) == _SHARED:
            part = names[1]
        self.push(name, _Local((*path, part), size, None))

    def bind(self, node: Comprehension) -> Range:
        total = self.cost(node.iter_range).plus(self.cost(node.accu_init))
        self.push_value(node.accu_var, node.accu_init)
        total = total.plus(self.cost(node.result))
        self.locals[node.accu_var].pop()
        self.copy(node, node.result)
        return total

    def copy(self, target: Node, source: Node) -> None:
        size, entries = self.size(source), self.entry_sizes(source)
        if size is not None:
            self.sizes[id(target)] = size
        if entries is not None:
            self.entries[id(target)] = entries

    def fold(self, node: Comprehension) -> Range:
        total = self.cost(node.iter_range).plus(self.cost(node.accu_init))
        self.push_value(node.accu_var, node.accu_init)
        two = bool(node.iter_var2)
        self.push_part(node.iter_var, node.iter_range, key=True, two=two)
        if two:
            self.push_part(node.iter_var2, node.iter_range, key=False, two=True)
        loop = self.cost(node.condition)
        step = self.cost(node.step)
        self.locals[node.iter_var].pop()
        if two:
            self.locals[node.iter_var2].pop()
        total = total.plus(self.cost(node.result))
        self.locals[node.accu_var].pop()
        count = self.size_or_unknown(node.iter_range)
        if isinstance(node.accu_init, Literal):
            size = self.size(node.accu_init)
            if size is not None:
                self.sizes[id(node)] = size
        elif isinstance(node.accu_init, (ListExpr, MapExpr)):
            self.sizes[id(node)] = count
            entries = self.entry_sizes(node.step)
            if entries is not None:
                self.entries[id(node)] = entries
        return total.plus(count.times(step.plus(loop)))

    # Calls

    def call(self, node: Call) -> Range:
        if node.function == "dyn":
            total = self.cost(node.args[0])
            self.copy(node, node.args[0])
            return total.plus(_ONE)
        costs = []
        args = []
        for arg in node.args:
            costs.append(self.cost(arg))
            args.append(self.operand(arg))
        total = _ZERO
        target = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.operand(node.target)
        cost = _NOTHING
        result: Range | None = None
        for overload in node.overloads:
            call_cost, size = self.function(node, overload, target, args, costs)
            cost = cost.union(call_cost)
            if size is not None:
                result = size if result is None else result.union(size)
            if overload in ("index_list", "index_map"):
                entries = self.entry_sizes(node.args[0])
                result = None if entries is None else entries.value
                part = "@items" if overload == "index_list" else "@values"
                self.paths[id(node)] = (*self.path(node.args[0]), part)
            if result is None:
                result = self.size(node)
        if result is not None:
            self.sizes[id(node)] = result
        return total.plus(cost)

    def function(
        self,
        node: Call,
        overload: str,
        target: Operand | None,
        args: list[Operand],
        costs: list[Range],
    ) -> tuple[Range, Range | None]:
        total = _ZERO
        for cost in costs:
            total = total.plus(cost)
        if overload in ("logical_and", "logical_or"):
            return Range(costs[0].low, total.high), None
        if overload == "conditional":
            return self.conditional(node, costs)
        found = estimate_call(node.function, overload, target, args)
        if found is None:
            found = self.standard(node, overload, target, args)
        return found[0].plus(total), found[1]

    def conditional(self, node: Call, costs: list[Range]) -> tuple[Range, Range]:
        _, yes, no = node.args
        entries = _union(self.entry_sizes(yes), self.entry_sizes(no))
        if entries is not None:
            self.entries[id(node)] = entries
        size = self.size_or_unknown(yes).union(self.size_or_unknown(no))
        return costs[0].plus(costs[1].union(costs[2])), size

    def standard(
        self, node: Call, overload: str, target: Operand | None, args: list[Operand]
    ) -> tuple[Range, Range | None]:
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
        if overload in ("starts_with_string", "ends_with_string"):
            return scan[0], None
        if overload == "in_list":
            return sizes[1].scaled(1), None
        if overload in ("matches", "matches_string"):
            text, pattern = (receiver, sizes[0]) if target is not None else (sizes[0], sizes[1])
            cost = text.plus(_ONE).scaled(STRING_FACTOR).times(pattern.scaled(REGEX_FACTOR))
            return cost, None
        if overload == "contains_string" and target is not None:
            return receiver.scaled(STRING_FACTOR).times(scan[0]), None
        if overload in ("add_string", "add_bytes", "add_list"):
            entries = _union(self.entry_sizes(node.args[0]), self.entry_sizes(node.args[1]))
            if entries is not None:
                self.entries[id(node)] = entries
            size = sizes[0].plus(sizes[1])
            return (_ONE if overload == "add_list" else size.scaled(STRING_FACTOR)), size
        if overload in _ORDERED or overload in ("equals", "not_equals"):
            high = min(sizes[0].high, sizes[1].high)
            return Range(1 if high > 0 else 0, high).scaled(STRING_FACTOR), None
        return _ONE, None


def estimate(node: Node, by_path: Callable[[tuple[str, ...]], Range | None]) -> int:
    """The largest cost of a checked expression.

    Args:
        node: the checked tree.
        by_path: the largest size of what a path from a variable leads to, None if unbounded.
    """
    return _Estimator(by_path).cost(node).high
