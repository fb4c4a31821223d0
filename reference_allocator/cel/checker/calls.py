"""The check of names, fields and calls: what they stand for, and which overloads fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reference_allocator.cel import types
from reference_allocator.cel.ast import Call, Ident, Literal, Node, Select
from reference_allocator.cel.environment.declarations import Environment, type_value
from reference_allocator.cel.environment.tables import Overload
from reference_allocator.cel.errors import Issue
from reference_allocator.cel.runtime.values import UndefinedType
from reference_allocator.cel.types import Bindings, CelType


def _show_signature(args: list[CelType], *, member: bool) -> str:
    texts = [item.text for item in args]
    return f"{texts[0]}.({', '.join(texts[1:])})" if member else f"({', '.join(texts)})"


def unwrap_optional(checked: CelType) -> tuple[CelType, bool]:
    """Return the type in an optional type, or the type itself, and whether it is optional."""
    if checked.kind == "opaque" and checked.name == "optional_type":
        return checked.params[0], True
    return checked, False


def qualified_name(node: Node) -> str | None:
    """Return ``a.b.c`` of plain selections on a name; None for another expression."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(names)]) if isinstance(node, Ident) else None


class NameChecker:
    """The part of the check of one expression that is about names and calls.

    It sets ``type``, ``overloads`` and the kind of each name, as cel-go's ``checkIdent``,
    ``checkSelect`` and ``checkCall`` do.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.bindings = Bindings()
        self.issues: list[Issue] = []
        self.scopes: list[dict[str, CelType]] = []
        self.nodes: list[Node] = []

    def check_node(self, node: Node) -> CelType:
        """Check an expression and return its type."""
        raise NotImplementedError

    def report(self, node: Node, message: str) -> None:
        """Record an issue at an expression."""
        self.issues.append(Issue(node.offset, message))

    def resolve(self, checked: CelType) -> CelType:
        """Return a type with the type parameters that are bound replaced."""
        return self.bindings.substitute(checked, free_to_dyn=False)

    def is_assignable(self, first: CelType, second: CelType) -> bool:
        """Return whether one type fits another; only then bind type parameters."""
        return self.bindings.is_assignable([first], [second])

    @contextmanager
    def open_scope(self, names: dict[str, CelType]) -> Iterator[None]:
        """Declare variables of a comprehension while the context lasts."""
        self.scopes.append(names)
        yield
        self.scopes.pop()

    def find_local(self, name: str) -> CelType | None:
        """Return the type of a comprehension's variable; None if there is none of that name."""
        for names in reversed(self.scopes):
            if name in names:
                return names[name]
        return None

    def report_undeclared(self, node: Node, name: str) -> CelType:
        """Record that a name is not declared; return the error type."""
        # Since 1.38 cel-go also guesses what was meant ("did you mean"), which is not done here.
        container = "" if self.environment.is_since("1.38") else " (in container '')"
        self.report(node, f"undeclared reference to '{name}'{container}")
        return types.ERROR

    def report_mismatch(self, node: Node, expected: CelType, found: CelType) -> CelType:
        """Record that an expression is of another type than expected; return the error type."""
        self.report(node, f"expected type '{expected.text}' but found '{found.text}'")
        return types.ERROR

    def require_optional(self, node: Node, checked: CelType) -> CelType:
        """Return the type in an optional type; record an issue where it is not optional."""
        value, is_optional = unwrap_optional(checked)
        if not is_optional and not types.is_dyn(value):
            self.report_mismatch(node, types.optional_of(value), value)
        return value

    def check_ident(self, node: Ident) -> CelType:
        """Check a name: a variable, or a type as a value."""
        if not node.name.startswith("."):
            local = self.find_local(node.name)
            if local is not None:
                node.local = True
                return local
        name = node.name.removeprefix(".")
        if name in self.environment.variables:
            return self.environment.variables[name]
        return self.find_constant(node, name) or self.report_undeclared(node, node.name)

    def find_constant(self, node: Ident | Select, name: str) -> CelType | None:
        """Return the type of a name that is a constant (a type's, an enum's); None for others."""
        named = self.environment.table.type_names.get(name)
        if named is not None:
            node.constant = type_value(named)
            return types.type_of(named)
        message = self.environment.table.messages.get(name)
        if message is not None:
            node.constant = UndefinedType(name)
            return types.type_of(message.type)
        if name in self.environment.table.constants:
            node.constant = self.environment.table.constants[name]
            return types.INT
        return None

    def check_select(self, node: Select) -> CelType:
        """Check a field, its presence, or a qualified name."""
        if not node.test_only:
            name = qualified_name(node)
            if name is not None and self.find_local(name.split(".", 1)[0]) is None:
                constant = self.find_constant(node, name.removeprefix("."))
                if constant is not None:
                    return constant
        result = self.check_field(node, node.operand, node.field, optional=False)
        return types.BOOL if node.test_only else self.resolve(result)

    def check_field(self, node: Node, operand: Node, name: str, *, optional: bool) -> CelType:
        """Check the selection of a field and return the field's type."""
        target, is_optional = unwrap_optional(self.resolve(self.check_node(operand)))
        result = types.ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            message = self.environment.table.messages.get(target.name)
            if message is None or message.type != target:
                self.report(node, f"unexpected failed resolution of '{target.name}'")
            elif name not in message.fields:
                self.report(node, f"undefined field '{name}'")
            else:
                result = message.fields[name]
        elif target.kind == "param":
            self.is_assignable(types.DYN, target)
            result = types.DYN
        else:
            if not types.is_dyn_or_error(target):
                self.report(node, f"type '{target.text}' does not support field selection")
            result = types.DYN
        return types.optional_of(result) if is_optional or optional else result

    def check_call(self, node: Call) -> CelType:
        """Check a call and return the type of its result."""
        if node.function == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            field.type = types.STRING
            node.overloads = ("select_optional_field",)
            return self.resolve(self.check_field(node, node.args[0], field.value, optional=True))
        args = [self.check_node(arg) for arg in node.args]
        functions = self.environment.table.functions
        if node.target is None:
            name = node.function.removeprefix(".")
            if name not in functions:
                return self.report_undeclared(node, node.function)
            node.function = name
            return self.resolve_overload(node, functions[name], args, member=False)
        prefix = qualified_name(node.target)
        if prefix is not None:
            qualified = f"{prefix}.{node.function}".removeprefix(".")
            if qualified in functions:
                node.function, node.target = qualified, None
                return self.resolve_overload(node, functions[qualified], args, member=False)
        receiver = self.check_node(node.target)
        if node.function not in functions:
            return self.report_undeclared(node, node.function)
        return self.resolve_overload(node, functions[node.function], [receiver, *args], member=True)

    def resolve_overload(
        self, node: Call, overloads: tuple[Overload, ...], args: list[CelType], *, member: bool
    ) -> CelType:
        """Find the overloads that the arguments fit, and return the type of the result."""
        if node.function in ("_&&_", "_||_"):
            return self.check_logical(node, overloads[0], args)
        result: CelType | None = None
        overload_ids: list[str] = []
        for overload in overloads:
            if overload.member != member:
                continue
            expected, declared = self.instantiate(overload)
            if not self.bindings.is_assignable(args, expected):
                continue
            overload_ids.append(overload.id)
            declared = self.resolve(declared)
            if result is None:
                result = declared
            elif not types.is_dyn(result) and declared != result:
                result = types.DYN
        if result is None:
            substituted = [self.bindings.substitute(arg, free_to_dyn=True) for arg in args]
            text = _show_signature(substituted, member=member)
            self.report(
                node, f"found no matching overload for '{node.function}' applied to '{text}'"
            )
            return types.ERROR
        node.overloads = tuple(overload_ids)
        return result

    def check_logical(self, node: Call, overload: Overload, args: list[CelType]) -> CelType:
        """Check a chain of ``&&`` or ``||``, which may have any number of terms."""
        node.overloads = (overload.id,)
        result = types.BOOL
        for arg, checked in zip(node.args, args, strict=True):
            if not self.is_assignable(checked, types.BOOL):
                self.report(arg, f"expected type 'bool' but found '{checked.text}'")
                result = types.ERROR
        return result

    def instantiate(self, overload: Overload) -> tuple[list[CelType], CelType]:
        """Return the overload's argument and result types, with type parameters of their own."""
        if not overload.type_params:
            return list(overload.args), overload.result
        names = {name: self.bindings.new_type_var() for name in overload.type_params}

        def replace(checked: CelType) -> CelType:
            if checked.kind == "param":
                return names[checked.name]
            if not checked.params:
                return checked
            return CelType(checked.kind, checked.name, tuple(map(replace, checked.params)))

        return [replace(arg) for arg in overload.args], replace(overload.result)
