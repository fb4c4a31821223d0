"""The estimate of an expression's largest cost, for any device (cel-go ``checker/cost.go``)."""

from __future__ import annotations

from typing import Final

from reference_allocator.cel import ast
from reference_allocator.cel.cost.common import (
    LIST_COST,
    MAP_COST,
    MAX,
    STRUCT_COST,
    Range,
    fixed_range,
)
from reference_allocator.cel.cost.functions import (
    ADDITIONS,
    Operand,
    estimate_call,
    estimate_operator,
    estimate_since_1_38,
)
from reference_allocator.cel.cost.knowledge import Entries, Knowledge
from reference_allocator.cel.parser.macros import UNUSED

_ZERO: Final = fixed_range(0)
_ONE: Final = fixed_range(1)
_NOTHING: Final = Range(MAX, 0)
_KEEP_ELEMENTS: Final = frozenset(
    {"@sortByAssociatedKeys", "distinct", "flatten", "reverse", "slice", "sort"}
)
"""The functions whose result has elements of their list, as cel-go says since 0.33
(``ext/lists.go``); of ``flatten`` they are the lists in it."""


class _Estimator(Knowledge):
    """The estimate of the cost of one expression."""

    def cost_of(self, node: ast.Node) -> Range:
        """Return the cost of an expression and all in it (cel-go ``coster.cost``)."""
        match node:
            case ast.Literal():
                return _ZERO
            case ast.Ident():
                local = self.find_local(node)
                self.paths[id(node)] = (node.name,) if local is None else local.path
                return _ONE
            case ast.Select():
                return self.cost_select(node)
            case ast.Call():
                return self.cost_call(node)
            case ast.ListExpr():
                return self.cost_list(node)
            case ast.MapExpr() | ast.StructExpr():
                return self.cost_map(node)
            case ast.Comprehension():
                return (
                    self.cost_bind(node)
                    if node.iter_var == UNUSED
                    else self.cost_comprehension(node)
                )
            case _:
                raise AssertionError(type(node))

    def cost_select(self, node: ast.Select) -> Range:
        if node.constant is not None:
            return _ONE
        total = self.cost_of(node.operand)
        path = self.path_of(node.operand)
        if path and self.since_1_38:  # has() is as large as the value that it asks for.
            self.paths[id(node)] = (*path, node.field)
        if node.test_only:
            return total  # Kubernetes charges nothing for has()
        kinds = ("map", "struct", "param", *(("dyn", "any") if self.since_1_38 else ()))
        if node.operand.type.kind in kinds:
            total = total.add(_ONE)
        if not self.since_1_38:
            self.paths[id(node)] = (*path, node.field)
        return total

    def cost_list(self, node: ast.ListExpr) -> Range:
        total, item = fixed_range(LIST_COST), _NOTHING if node.elements else Range(0, 0)
        inner = None
        for element in node.elements:
            total = total.add(self.cost_of(element))
            item = item.union(self.size_or_unknown(element))
            inner = self.union_inner(inner, element)
        self.record_entries(node, Entries("list", _ONE, item, inner), is_empty=not node.elements)
        return total

    def union_inner(self, inner: Entries | None, value: ast.Node) -> Entries | None:
        """Return the sizes of the entries of a container's values with those of one more."""
        return self.union_entries(inner, self.entry_sizes(value)) if self.since_1_38 else None

    def record_entries(self, node: ast.Node, entries: Entries, *, is_empty: bool) -> None:
        """Record the sizes of a written container's entries; since 1.38 an empty one has none."""
        if not (self.since_1_38 and is_empty):
            self.entries[id(node)] = entries

    def cost_map(self, node: ast.MapExpr | ast.StructExpr) -> Range:
        struct = isinstance(node, ast.StructExpr)
        total = fixed_range(STRUCT_COST if struct else MAP_COST)
        key = value = _NOTHING if node.entries else Range(0, 0)
        inner = None
        for entry in node.entries:
            total = total.add(self.cost_of(entry.key)).add(self.cost_of(entry.value))
            key = key.union(self.size_or_unknown(entry.key))
            value = value.union(self.size_or_unknown(entry.value))
            inner = self.union_inner(inner, entry.value)
        if not struct:
            entries = Entries("map", key, value, inner)
            self.record_entries(node, entries, is_empty=not node.entries)
        return total

    # Folds

    def cost_bind(self, node: ast.Comprehension) -> Range:
        total = self.cost_of(node.iter_range).add(self.cost_of(node.accu_init))
        self.push_value(node.accu_var, node.accu_init)
        total = total.add(self.cost_of(node.result))
        if self.since_1_38:  # The result may be the variable.
            self.copy_sizes(node, node.result)
            self.paths[id(node)] = self.path_of(node.result)
        self.locals[node.accu_var].pop()
        if not self.since_1_38:
            self.copy_sizes(node, node.result)
        return total

    def cost_comprehension(self, node: ast.Comprehension) -> Range:
        total = self.cost_of(node.iter_range).add(self.cost_of(node.accu_init))
        self.push_value(node.accu_var, node.accu_init)
        two = bool(node.iter_var2)
        self.push_part(node.iter_var, node.iter_range, key=True, two=two)
        if two:
            self.push_part(node.iter_var2, node.iter_range, key=False, two=True)
        loop = self.cost_of(node.condition)
        step = self.cost_of(node.step)
        self.locals[node.iter_var].pop()
        if two:
            self.locals[node.iter_var2].pop()
        total = total.add(self.cost_of(node.result))
        self.locals[node.accu_var].pop()
        count = self.size_or_unknown(node.iter_range)
        if isinstance(node.accu_init, ast.Literal):
            size = self.size_of(node.accu_init)
            if size is not None:
                self.sizes[id(node)] = size
        elif isinstance(node.accu_init, (ast.ListExpr, ast.MapExpr)):
            self.sizes[id(node)] = count
            entries = self.entry_sizes(node.step)
            if entries is not None:
                self.entries[id(node)] = entries
        return total.add(count.multiply(step.add(loop)))

    # Calls

    def cost_call(self, node: ast.Call) -> Range:
        if node.function == "dyn":
            total = self.cost_of(node.args[0])
            self.copy_sizes(node, node.args[0])
            return total.add(_ONE)
        costs = []
        args = []
        for arg in node.args:
            costs.append(self.cost_of(arg))
            args.append(self.make_operand(arg))
        total = _ZERO
        target = None
        if node.target is not None:
            total = self.cost_of(node.target)
            target = self.make_operand(node.target)
        cost = _NOTHING
        result: Range | None = None
        for overload in node.overloads:
            call_cost, size = self.function_cost(node, overload, target, args, costs)
            cost = cost.union(call_cost)
            if size is not None:
                result = size if result is None else result.union(size)
            if overload in ("index_list", "index_map"):
                entries = self.entry_sizes(node.args[0])
                result = None if entries is None else entries.value
                path_step = "@items" if overload == "index_list" else "@values"
                self.paths[id(node)] = (*self.path_of(node.args[0]), path_step)
                if entries is not None and entries.of_values is not None:
                    self.entries[id(node)] = entries.of_values
            if result is None:
                result = self.size_of(node)
        if result is not None:
            self.sizes[id(node)] = result
        if self.since_1_38 and node.function in _KEEP_ELEMENTS and node.target is not None:
            entries = self.entry_sizes(node.target)
            if entries is not None:
                self.entries[id(node)] = entries
        return total.add(cost)

    def function_cost(
        self,
        node: ast.Call,
        overload: str,
        target: Operand | None,
        args: list[Operand],
        costs: list[Range],
    ) -> tuple[Range, Range | None]:
        """Return the cost of a call with its arguments, and the size of its result."""
        total = _ZERO
        for cost in costs:
            total = total.add(cost)
        if overload in ("logical_and", "logical_or"):
            return Range(costs[0].low, total.high), None
        if overload == "conditional":
            return self.conditional_cost(node, costs)
        cost_and_size = None
        if self.since_1_38:
            cost_and_size = estimate_since_1_38(node.function, overload, target, args)
        if cost_and_size is None:
            cost_and_size = estimate_call(node.function, overload, target, args)
        if cost_and_size is None:
            cost_and_size = estimate_operator(node.function, overload, target, args)
            if overload in ADDITIONS:
                self.join_entries(node, node.args[0], node.args[1])
        return cost_and_size[0].add(total), cost_and_size[1]

    def conditional_cost(self, node: ast.Call, costs: list[Range]) -> tuple[Range, Range]:
        _, yes, no = node.args
        self.join_entries(node, yes, no)
        size = self.size_or_unknown(yes).union(self.size_or_unknown(no))
        return costs[0].add(costs[1].union(costs[2])), size

    def join_entries(self, target: ast.Node, first: ast.Node, second: ast.Node) -> None:
        """Record that the target's entries are those of the one or the other."""
        entries = self.union_entries(self.entry_sizes(first), self.entry_sizes(second))
        if entries is not None:
            self.entries[id(target)] = entries


def estimate(node: ast.Node, *, since_1_38: bool) -> int:
    """Return the largest cost of a checked expression about a device."""
    return _Estimator(since_1_38=since_1_38).cost_of(node).high
