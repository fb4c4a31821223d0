"""Checking messages that are built: ``google.protobuf.Int64Value{value: 1}``."""

from __future__ import annotations

from typing import Final

from reference_allocator.cel import types
from reference_allocator.cel.ast import Entry, Literal, StructExpr
from reference_allocator.cel.checker.state import Checking
from reference_allocator.cel.errors import Issue
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


class MessageChecker(Checking):
    """Messages, of cel-go's ``checkCreateStruct``."""

    def struct(self, node: StructExpr) -> CelType:
        """A message that is built."""
        name = node.type_name.removeprefix(".")
        result = self.environment.type_names.get(name)
        if result is None:
            if name not in self.environment.messages:
                return self.undeclared(node, node.type_name)
            result = self.environment.messages[name].type
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

    def initializer(self, entry: Entry, message: str) -> None:
        """A field of a message that is built."""
        assert isinstance(entry.key, Literal)
        name = entry.key.value
        entry.key.type = types.STRING
        checked = self.check(entry.value)
        known = self.environment.messages.get(message)
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
