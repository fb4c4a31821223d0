"""The type checker, for which Kubernetes rejects an expression when it is written.

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
    """Return the protobuf message that stands for a type; None if there is none."""
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
    """The check of one expression."""

    def check_node(self, node: ast.Node) -> CelType:
        match node:
            case ast.Literal():
                checked = _LITERAL_TYPES[type(node.value)]
            case ast.Ident():
                checked = self.check_ident(node)
            case ast.Select():
                checked = self.check_select(node)
            case ast.Call():
                checked = self.check_call(node)
            case ast.ListExpr():
                checked = self.check_list(node)
            case ast.MapExpr():
                checked = self.check_map(node)
            case ast.StructExpr():
                checked = self.check_struct(node)
            case ast.Comprehension():
                checked = self.check_comprehension(node)
            case _:
                raise AssertionError(type(node))
        node.type = checked
        self.nodes.append(node)
        return checked

    # Aggregates

    def join_types(self, previous: CelType | None, current: CelType) -> CelType:
        """Return the type of elements or values of both types; dyn where they do not unify."""
        if previous is None:
            return current
        if self.is_assignable(previous, current):
            return types.join_types(previous, current)
        return types.DYN  # a validator reports it, unless the literal belongs to ``format``

    def check_list(self, node: ast.ListExpr) -> CelType:
        joined: CelType | None = None
        for index, element in enumerate(node.elements):
            checked = self.check_node(element)
            if index in node.optional:
                checked = self.require_optional(element, checked)
            joined = self.join_types(joined, checked)
        return types.list_of(joined or self.bindings.new_type_var())

    def check_map(self, node: ast.MapExpr) -> CelType:
        key_type: CelType | None = None
        value_type: CelType | None = None
        for entry in node.entries:
            key_type = self.join_types(key_type, self.check_node(entry.key))
            checked = self.check_node(entry.value)
            if entry.optional:
                checked = self.require_optional(entry.value, checked)
            value_type = self.join_types(value_type, checked)
        return types.map_of(
            key_type or self.bindings.new_type_var(), value_type or self.bindings.new_type_var()
        )

    # Messages
    def check_struct(self, node: ast.StructExpr) -> CelType:
        name = node.type_name.removeprefix(".")
        result = self.environment.table.type_names.get(name)
        if result is None:
            if name not in self.environment.table.messages:
                return self.report_undeclared(node, node.type_name)
            result = self.environment.table.messages[name].type
        node.type_name = name
        well_known = _message_name(result)
        if result.kind == "list" and name == "list" and not self.environment.is_since("1.37"):
            well_known = None
        if well_known is None:
            self.report(node, f"'{result.name}' is not a message type")
            well_known, result = name, types.ERROR
        for entry in node.entries:
            self.check_initializer(entry, well_known)
        return result

    def check_initializer(self, entry: ast.Entry, message: str) -> None:
        """Check the value of a message's field."""
        assert isinstance(entry.key, ast.Literal)
        name = entry.key.value
        entry.key.type = types.STRING
        checked = self.check_node(entry.value)
        declared = self.environment.table.messages.get(message)
        expected = types.ERROR
        if declared is None:
            self.issues.append(Issue(entry.offset, f"unexpected failed resolution of '{message}'"))
        elif name in declared.fields:
            expected = declared.fields[name]
        else:
            self.issues.append(Issue(entry.offset, f"undefined field '{name}'"))
        if entry.optional:
            checked = self.require_optional(entry.value, checked)
        if not self.is_assignable(expected, checked):
            message = f"expected type of field '{name}' is '{expected.text}' but provided type is"
            self.issues.append(Issue(entry.offset, f"{message} '{checked.text}'"))

    # Folds

    def check_comprehension(self, node: ast.Comprehension) -> CelType:
        range_type = self.resolve(self.check_node(node.iter_range))
        accu_type = self.check_node(node.accu_init)
        with self.open_scope({node.accu_var: accu_type}):
            with self.open_scope(self.iteration_types(node, self.resolve(range_type))):
                self.require_type(node.condition, types.BOOL)
                self.require_type(node.step, accu_type)
            result = self.check_node(node.result)
        return self.resolve(result)

    def iteration_types(self, node: ast.Comprehension, range_type: CelType) -> dict[str, CelType]:
        """Return variable -> type for the iteration variables of a comprehension."""
        two = bool(node.iter_var2)
        if range_type.kind == "list":
            element = range_type.params[0]
            first, second = (types.INT, element) if two else (element, element)
        elif range_type.kind == "map":
            first, second = range_type.params
        elif (
            types.is_dyn_or_error(range_type) and range_type.kind != "any"
        ) or range_type.kind == "param":
            self.is_assignable(types.DYN, range_type)
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

    def require_type(self, node: ast.Node, expected: CelType) -> None:
        """Check an expression, and record an issue where its type does not fit."""
        checked = self.check_node(node)
        if not self.is_assignable(expected, checked):
            self.report_mismatch(node, expected, checked)


def check(node: ast.Node, environment: Environment) -> list[Issue]:
    """Annotate the tree with types and overloads.

    Returns the issues of the expression; when there is none, each node has its final ``type``.
    """
    checker = _Checker(environment)
    checker.check_node(node)
    for checked in checker.nodes:
        checked.type = checker.bindings.substitute(checked.type, free_to_dyn=True)
    return checker.issues
