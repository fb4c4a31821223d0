"""The most that an expression can cost, whatever the device (cel-go ``checker/cost.go``)."""

from __future__ import annotations

from typing import Final

from reference_allocator.cel import ast
from reference_allocator.cel.cost.common import LIST_COST, MAP_COST, MAX, STRUCT_COST, Range, fixed
from reference_allocator.cel.cost.functions import (
    ADDITIONS,
    Operand,
    estimate_call,
    estimate_operator,
)
from reference_allocator.cel.cost.knowledge import Entries, Knowledge, union
from reference_allocator.cel.parser.macros import UNUSED

_ZERO: Final = fixed(0)
_ONE: Final = fixed(1)
_NOTHING: Final = Range(MAX, 0)


class _Estimator(Knowledge):
    """Adds up the costs of one expression."""

    def cost(self, node: ast.Node) -> Range:
        match node:
            case ast.Literal():
                return _ZERO
            case ast.Ident():
                local = self.local(node)
                self.paths[id(node)] = (node.name,) if local is None else local.path
                return _ONE
            case ast.Select():
                return self.select(node)
            case ast.Call():
                return self.call(node)
            case ast.ListExpr():
                return self.list_literal(node)
            case ast.MapExpr() | ast.StructExpr():
                return self.map_literal(node)
            case ast.Comprehension():
                return self.bind(node) if node.iter_var == UNUSED else self.fold(node)
            case _:
                raise AssertionError(type(node))

    def select(self, node: ast.Select) -> Range:
        if node.constant is not None:
            return _ONE
        total = self.cost(node.operand)
        if node.test_only:
            return total  # Kubernetes charges nothing for has()
        if node.operand.type.kind in ("map", "struct", "param"):
            total = total.plus(_ONE)
        self.paths[id(node)] = (*self.path(node.operand), node.field)
        return total

    def list_literal(self, node: ast.ListExpr) -> Range:
        total, item = fixed(LIST_COST), _NOTHING if node.elements else Range(0, 0)
        for element in node.elements:
            total = total.plus(self.cost(element))
            item = item.union(self.size_or_unknown(element))
        self.entries[id(node)] = Entries("list", _ONE, item)
        return total

    def map_literal(self, node: ast.MapExpr | ast.StructExpr) -> Range:
        struct = isinstance(node, ast.StructExpr)
        total = fixed(STRUCT_COST if struct else MAP_COST)
        key = value = _NOTHING if node.entries else Range(0, 0)
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self.size_or_unknown(entry.key))
            value = value.union(self.size_or_unknown(entry.value))
        if not struct:
            self.entries[id(node)] = Entries("map", key, value)
        return total

    # Folds

    def bind(self, node: ast.Comprehension) -> Range:
        total = self.cost(node.iter_range).plus(self.cost(node.accu_init))
        self.push_value(node.accu_var, node.accu_init)
        total = total.plus(self.cost(node.result))
        self.locals[node.accu_var].pop()
        self.copy(node, node.result)
        return total

    def fold(self, node: ast.Comprehension) -> Range:
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
        if isinstance(node.accu_init, ast.Literal):
            size = self.size(node.accu_init)
            if size is not None:
                self.sizes[id(node)] = size
        elif isinstance(node.accu_init, (ast.ListExpr, ast.MapExpr)):
            self.sizes[id(node)] = count
            entries = self.entry_sizes(node.step)
            if entries is not None:
                self.entries[id(node)] = entries
        return total.plus(count.times(step.plus(loop)))

    # Calls

    def call(self, node: ast.Call) -> Range:
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
        node: ast.Call,
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
            found = estimate_operator(node.function, overload, target, args)
            if overload in ADDITIONS:
                self.join_entries(node, node.args[0], node.args[1])
        return found[0].plus(total), found[1]

    def conditional(self, node: ast.Call, costs: list[Range]) -> tuple[Range, Range]:
        _, yes, no = node.args
        self.join_entries(node, yes, no)
        size = self.size_or_unknown(yes).union(self.size_or_unknown(no))
        return costs[0].plus(costs[1].union(costs[2])), size

    def join_entries(self, target: ast.Node, first: ast.Node, second: ast.Node) -> None:
        """The target's entries are those of the one or the other."""
        entries = union(self.entry_sizes(first), self.entry_sizes(second))
        if entries is not None:
            self.entries[id(target)] = entries


def estimate(node: ast.Node) -> int:
    """The largest cost of a checked expression about a device."""
    return _Estimator().cost(node).high
