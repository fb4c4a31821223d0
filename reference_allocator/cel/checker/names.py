"""Checking names and fields: variables, types as values, enums, fields of maps and objects."""

from __future__ import annotations

from reference_allocator.cel import types
from reference_allocator.cel.ast import Ident, Node, Select
from reference_allocator.cel.checker.state import Checking, qualified_name, unwrap_optional
from reference_allocator.cel.environment.declarations import type_value
from reference_allocator.cel.runtime.values import UndefinedType
from reference_allocator.cel.types import CelType


class NameChecker(Checking):
    """Names, of cel-go's ``checkIdent``, ``checkSelect`` and ``lookupGlobalIdent``."""

    def ident(self, node: Ident) -> CelType:
        """A name: a variable, or a type as a value."""
        if not node.name.startswith("."):
            local = self.local(node.name)
            if local is not None:
                node.local = True
                return local
        name = node.name.removeprefix(".")
        if name in self.environment.variables:
            return self.environment.variables[name]
        return self.constant(node, name) or self.undeclared(node, node.name)

    def constant(self, node: Ident | Select, name: str) -> CelType | None:
        """The type of a type's or an enum's name, which is a constant."""
        named = self.environment.type_names.get(name)
        if named is not None:
            node.constant = type_value(named)
            return types.type_of(named)
        message = self.environment.messages.get(name)
        if message is not None:
            node.constant = UndefinedType(name)
            return types.type_of(message.type)
        if name in self.environment.constants:
            node.constant = self.environment.constants[name]
            return types.INT
        return None

    def select(self, node: Select) -> CelType:
        """A field, its presence, or a qualified name."""
        if not node.test_only:
            name = qualified_name(node)
            if name is not None and self.local(name.split(".", 1)[0]) is None:
                constant = self.constant(node, name.removeprefix("."))
                if constant is not None:
                    return constant
        result = self.field(node, node.operand, node.field, optional=False)
        return types.BOOL if node.test_only else self.resolve(result)

    def field(self, node: Node, operand: Node, name: str, *, optional: bool) -> CelType:
        """The type of a field."""
        target, is_optional = unwrap_optional(self.resolve(self.check(operand)))
        result = types.ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            fields = self.environment.fields.get(target.name)
            if fields is None:
                self.report(node, f"unexpected failed resolution of '{target.name}'")
            elif name not in fields:
                self.report(node, f"undefined field '{name}'")
            else:
                result = fields[name]
        elif target.kind == "param":
            self.assignable(types.DYN, target)
            result = types.DYN
        else:
            if not types.is_dyn_or_error(target):
                self.report(node, f"type '{target.text}' does not support field selection")
            result = types.DYN
        return types.optional_of(result) if is_optional or optional else result
