"""Code for variables, fields, indices and their optional forms."""

from __future__ import annotations

from typing import Final

from reference_allocator.cel import types
from reference_allocator.cel.ast import Call, Ident, Literal, Node, Select
from reference_allocator.cel.codegen.device import DeviceEmitter
from reference_allocator.cel.codegen.emitter import inner_map, is_optional

_DEVICE_FIELDS: Final = {
    "driver": "driver",
    "attributes": "attributes",
    "capacity": "capacity",
    "allowMultipleAllocations": "allow_multiple_allocations",
}


class FieldEmitter(DeviceEmitter):
    """Finds values in other values."""

    def ident(self, node: Ident) -> str:
        """A variable or the name of a type."""
        if node.constant is not None:
            return self.constant(node.constant)
        if node.local:
            name = self.local(node)
            return self.domain_map(name) or name
        name = node.name.removeprefix(".")
        if self.device:
            return "device.as_map"
        return self.variables.setdefault(name, f"v{len(self.variables)}")

    def container(self, node: Node) -> str:
        """What is selected from: not a constant's text, of which Python warns (``None['a']``)."""
        known, value = self.fold(node)
        return self.constant(value) if known else self.emit(node)

    def select(self, node: Select) -> str:
        """``a.b`` and ``has(a.b)``."""
        if node.constant is not None:
            return self.constant(node.constant)
        operand = node.operand
        if self.device and isinstance(operand, Ident) and not operand.local:
            if node.test_only:
                return "True"  # the checker knows the field, and it is always set
            if operand.constant is None:
                return f"device.{_DEVICE_FIELDS[node.field]}"
        named = self.named(operand, node.field)
        if named is not None:
            return named.present if node.test_only else named.value
        inner = self.container(operand)
        if node.test_only:
            if inner_map(operand.type):
                return f"({node.field!r} in {inner})"
            return f"has_field({inner}, {node.field!r})"
        if is_optional(operand.type):
            return f"select_optional({inner}, {node.field!r})"
        return f"{inner}[{node.field!r}]"

    def index(self, node: Call) -> str:
        """``a[b]``."""
        container, key = node.args
        named = self.named_by(container, key)
        if named is not None:
            return named.value
        inner = self.container(container)
        if is_optional(container.type):
            return f"select_optional({inner}, {self.emit(key)})"
        if isinstance(key, Literal):
            text = isinstance(key.value, str)
            whole = key.value.__class__ is int and key.value >= 0
            if text or (whole and container.type.kind == "list"):
                return f"{inner}[{key.value!r}]"
        if container.type.kind == "map" and key.type == types.STRING:
            return f"{inner}[{self.emit(key)}]"
        return f"index({inner}, {self.emit(key)})"

    def optional_index(self, node: Call) -> str:
        """``a.?b`` and ``a[?b]``."""
        container, key = node.args
        named = self.named_by(container, key)
        if named is None:
            return f"select_optional({self.emit(container)}, {self.emit(key)})"
        found = self.name("t")
        value = f"({found} := {named.found})"
        absent = "Optional(present=False)"
        return f"({absent} if {value} is MISSING else Optional({found}, present=True))"

    def or_value(self, node: Call) -> str:
        """``a.orValue(b)``, mostly after a question mark, where no optional value is needed."""
        target = node.target
        assert target is not None
        default = self.emit(node.args[0])
        if isinstance(target, Call) and target.function in ("_?._", "_[?_]"):
            container, key = target.args
            named = self.named_by(container, key)
            if named is not None:
                found = self.name("t")
                value = f"({found} := {named.found})"
                return f"({default} if {value} is MISSING else {found})"
            if (
                isinstance(key, Literal)
                and isinstance(key.value, str)
                and inner_map(container.type)
            ):
                found = self.name("t")
                value = f"({found} := {self.emit(container)}.get({key.value!r}, MISSING))"
                return f"({default} if {value} is MISSING else {found})"
        return f"or_value({self.emit(target)}, {default})"
