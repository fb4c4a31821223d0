"""The type checker: what Kubernetes rejects when an expression is written, not when it runs.

The rules, the order in which they are applied and the messages are cel-go's
(``checker/checker.go``), because the text of a rejection is part of what users see.
"""

from __future__ import annotations

from typing import Final

from reference_allocator.cel import ast, types
from reference_allocator.cel.checker.calls import NameChecker
from reference_allocator.cel.environment.declarations import Environment
from reference_allocator.cel.errors import Issue
from reference_allocator.cel.runtime.values import UInt
from reference_allocator.cel.types import CelType

_MESSAGES: Final = {
    "any": "google.protobuf.Any",
    "bool": "google.protobuf.BoolValue",
    "bytes": "google.protobuf.BytesValue",
    "double": "google.protobuf.DoubleValue",
    "duration": "google.protobuf.Duration",
    "dyn": "google.protobuf.Value",
    "int": "google.protobuf.Int64Value",
    "list": "google.protobuf.ListValue",
    "null": "google.protobuf.NullValue",
    "map": "google.protobuf.Struct",
    "string": "google.protobuf.StringValue",
    "timestamp": "google.protobuf.Timestamp",
    "uint": "google.protobuf.UInt64Value",
}


def _message_name(checked: CelType) -> str | None:
    """The protobuf message that stands for a type; None if there is none."""
    if checked.kind == "struct":
        return checked.name
    if checked.kind == "list" and checked.params[0].kind != "dyn":
        return None
    if checked.kind == "map" and (checked.params[0].kind, checked.params[1].kind) != (
        "string",
        "dyn",
    ):
        return None
    scalar = checked.kind in ("bool", "bytes", "double", "int", "string", "uint")
    if scalar and not checked.nullable:
        return None
    return _MESSAGES.get(checked.kind)


_LITERAL_TYPES = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


class _Checker(NameChecker):
    """One check of one expression."""

    def check(self, node: ast.Node) -> CelType:
        match node:
            case ast.Literal():
                checked = _LITERAL_TYPES[type(node.value)]
            case ast.Ident():
                checked = self.ident(node)
            case ast.Select():
                checked = self.select(node)
            case ast.Call():
                checked = self.call(node)
            case ast.ListExpr():
                checked = self.list(node)
            case ast.MapExpr():
                checked = self.map(node)
            case ast.StructExpr():
                checked = self.struct(node)
            case ast.Comprehension():
                checked = self.comprehension(node)
            case _:
                raise AssertionError(type(node))
        node.type = checked
        self.nodes.append(node)
        return checked

    # Aggregates

    def join(self, previous: CelType | None, current: CelType) -> CelType:
        if previous is None:
            return current
        if self.assignable(previous, current):
            return types.join(previous, current)
        return types.DYN  # a validator reports it, unless the literal belongs to ``format``

    def list(self, node: ast.ListExpr) -> CelType:
        joined: CelType | None = None
        for index, element in enumerate(node.elements):
            checked = self.check(element)
            if index in node.optional:
                checked = self.optional(element, checked)
            joined = self.join(joined, checked)
        return types.list_of(joined or self.bindings.fresh())

    def map(self, node: ast.MapExpr) -> CelType:
        key_type: CelType | None = None
        value_type: CelType | None = None
        for entry in node.entries:
            key_type = self.join(key_type, self.check(entry.key))
            checked = self.check(entry.value)
            if entry.optional:
                checked = self.optional(entry.value, checked)
            value_type = self.join(value_type, checked)
        return types.map_of(key_type or self.bindings.fresh(), value_type or self.bindings.fresh())

    # Messages
    def struct(self, node: ast.StructExpr) -> CelType:
        name = node.type_name.removeprefix(".")
        result = self.environment.table.type_names.get(name)
        if result is None:
            if name not in self.environment.table.messages:
                return self.undeclared(node, node.type_name)
            result = self.environment.table.messages[name].type
        node.type_name = name
        well_known = _message_name(result)
        if result.kind == "list" and name == "list" and not self.environment.modern:
            well_known = None
        if well_known is None:
            self.report(node, f"'{result.name}' is not a message type")
            well_known, result = name, types.ERROR
        for entry in node.entries:
            self.initializer(entry, well_known)
        return result

    def initializer(self, entry: ast.Entry, message: str) -> None:
        assert isinstance(entry.key, ast.Literal)
        name = entry.key.value
        entry.key.type = types.STRING
        checked = self.check(entry.value)
        known = self.environment.table.messages.get(message)
        expected = types.ERROR
        if known is None:
            self.issues.append(Issue(entry.offset, f"unexpected failed resolution of '{message}'"))
        elif name in known.fields:
            expected = known.fields[name]
        else:
            self.issues.append(Issue(entry.offset, f"undefined field '{name}'"))
        if entry.optional:
            checked = self.optional(entry.value, checked)
        if not self.assignable(expected, checked):
            message = f"expected type of field '{name}' is '{expected.text}' but provided type is"
            self.issues.append(Issue(entry.offset, f"{message} '{checked.text}'"))

    # Folds

    def comprehension(self, node: ast.Comprehension) -> CelType:
        range_type = self.resolve(self.check(node.iter_range))
        accu_type = self.check(node.accu_init)
        with self.scope({node.accu_var: accu_type}):
            with self.scope(self.iteration_types(node, self.resolve(range_type))):
                self.require(node.condition, types.BOOL)
                self.require(node.step, accu_type)
            result = self.check(node.result)
        return self.resolve(result)

    def iteration_types(self, node: ast.Comprehension, range_type: CelType) -> dict[str, CelType]:
        two = bool(node.iter_var2)
        if range_type.kind == "list":
            element = range_type.params[0]
            first, second = (types.INT, element) if two else (element, element)
        elif range_type.kind == "map":
            first, second = range_type.params
        elif (
            types.is_dyn_or_error(range_type) and range_type.kind != "any"
        ) or range_type.kind == "param":
            self.assignable(types.DYN, range_type)
            first = second = types.DYN
        else:
            self.report(
                node.iter_range,
                f"expression of type '{range_type.text}' cannot be range of a comprehension"
                " (must be list, map, or dynamic)",
            )
            first = second = types.ERROR
        names = {node.iter_var: first}
        if two:
            names[node.iter_var2] = second
        return names

    def require(self, node: ast.Node, expected: CelType) -> None:
        checked = self.check(node)
        if not self.assignable(expected, checked):
            self.mismatch(node, expected, checked)


def check(node: ast.Node, environment: Environment) -> list[Issue]:
    """Annotate the tree with types and overloads.

    Returns what is wrong with the expression; when empty, each node has its final ``type``.
    """
    checker = _Checker(environment)
    checker.check(node)
    for checked in checker.nodes:
        checked.type = checker.bindings.substitute(checked.type, free_to_dyn=True)
    return checker.issues
