"""Evaluating what has parts: lists, maps, messages and folds."""

from __future__ import annotations

from typing import Any

from reference_allocator.cel.ast import Comprehension, ListExpr, Literal, MapExpr, StructExpr
from reference_allocator.cel.cost.ranges import LIST_COST, MAP_COST, STRUCT_COST
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.interpreter.outcomes import Err, Lazy, plain, visited
from reference_allocator.cel.interpreter.state import Evaluation
from reference_allocator.cel.protobuf.messages import build
from reference_allocator.cel.runtime.conversions import shown
from reference_allocator.cel.runtime.maps import map_key
from reference_allocator.cel.runtime.values import Optional


class Aggregates(Evaluation):
    """Literals with parts, and comprehensions."""

    def list(self, node: ListExpr, scope: dict[str, Any]) -> Any:
        """The value of a list literal."""
        value = self._elements(node, scope)
        self.charge(LIST_COST)  # also for an element that is an error
        return value

    def _elements(self, node: ListExpr, scope: dict[str, Any]) -> Any:
        result: list[Any] = []
        for index, element in enumerate(node.elements):
            value = self.evaluate(element, scope)
            if value.__class__ is Err:
                return value
            if index in node.optional:
                if value.__class__ is not Optional:
                    return Err(
                        f"cannot initialize optional list element from non-optional value"
                        f" {shown(value)}"
                    )
                if not value.present:
                    continue
                value = value.value
            result.append(plain(value))
        return result

    def map(self, node: MapExpr, scope: dict[str, Any]) -> Any:
        """The value of a map literal."""
        value = self._entries(node, scope)
        self.charge(MAP_COST)
        return value

    def _entries(self, node: MapExpr, scope: dict[str, Any]) -> Any:
        result: dict[Any, Any] = {}
        for entry in node.entries:
            key = self.evaluate(entry.key, scope)
            if key.__class__ is Err:
                return key
            value = self.evaluate(entry.value, scope)
            if value.__class__ is Err:
                return value
            if entry.optional:
                if value.__class__ is not Optional:
                    return Err(
                        f"cannot initialize optional entry '{shown(key)}' from non-optional value"
                        f" {shown(value)}"
                    )
                if not value.present:
                    result.pop(map_key(key), None)
                    continue
                value = value.value
            result[map_key(key)] = plain(value)
        return result

    def message(self, node: StructExpr, scope: dict[str, Any]) -> Any:
        """The value of a message that is built."""
        value = self._built(node, scope)
        self.charge(STRUCT_COST)
        return value

    def _built(self, node: StructExpr, scope: dict[str, Any]) -> Any:
        fields: dict[str, Any] = {}
        for entry in node.entries:
            assert isinstance(entry.key, Literal)
            name = entry.key.value
            value = self.evaluate(entry.value, scope)
            if value.__class__ is Err:
                return value
            fields.pop(name, None)
            if entry.optional:
                if value.__class__ is not Optional:
                    return Err(
                        f"cannot initialize optional entry '{name}' from non-optional value"
                        f" {shown(value)}"
                    )
                if not value.present:
                    continue
                value = value.value
            fields[name] = plain(value)
        try:
            return build(node.type_name, fields)
        except CelRuntimeError as failure:
            return Err(str(failure))

    def fold(self, node: Comprehension, scope: dict[str, Any]) -> Any:
        """The value of a fold."""
        items = self.evaluate(node.iter_range, scope)
        if items.__class__ is Err:
            return items
        steps = visited(items, two=bool(node.iter_var2))
        if steps.__class__ is Err:
            return steps
        inner = {**scope, node.accu_var: Lazy(scope, node.accu_init)}
        accu_name = node.accu_var
        for first, second in steps:
            self.look_at_clock()
            inner[node.iter_var] = first
            if node.iter_var2:
                inner[node.iter_var2] = second
            if self.evaluate(node.condition, inner) is False:
                break
            inner[accu_name] = self.evaluate(node.step, inner)
        for name in (node.iter_var, node.iter_var2):
            if name in scope:
                inner[name] = scope[name]
        result = self.evaluate(node.result, inner)
        return plain(result)
