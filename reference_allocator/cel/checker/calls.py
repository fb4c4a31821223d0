"""Checking names, fields and calls: what they stand for, and which overloads fit."""

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


def _signature(args: list[CelType], *, member: bool) -> str:
    texts = [item.text for item in args]
    return f"{texts[0]}.({', '.join(texts[1:])})" if member else f"({', '.join(texts)})"


def unwrap_optional(checked: CelType) -> tuple[CelType, bool]:
    """The type in an optional one, and whether it is one."""
    if checked.kind == "opaque" and checked.name == "optional_type":
        return checked.params[0], True
    return checked, False


def qualified_name(node: Node) -> str | None:
    """``a.b.c`` of plain selections on a name."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(names)]) if isinstance(node, Ident) else None


class NameChecker:
    """One check of one expression; here of names and calls.

    It sets ``type``, ``overloads`` and the kind of each name, as cel-go's ``checkIdent``,
    ``checkSelect`` and ``checkCall`` do.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.bindings = Bindings()
        self.issues: list[Issue] = []
        self.scopes: list[dict[str, CelType]] = []
        self.nodes: list[Node] = []

    def check(self, node: Node) -> CelType:
        raise NotImplementedError

    def report(self, node: Node, message: str) -> None:
        self.issues.append(Issue(node.offset, message))

    def resolve(self, checked: CelType) -> CelType:
        """A type with the parameters that are known."""
        return self.bindings.substitute(checked, free_to_dyn=False)

    def assignable(self, first: CelType, second: CelType) -> bool:
        return self.bindings.assignable([first], [second])

    @contextmanager
    def scope(self, names: dict[str, CelType]) -> Iterator[None]:
        self.scopes.append(names)
        yield
        self.scopes.pop()

    def local(self, name: str) -> CelType | None:
        """The type of a comprehension's variable."""
        for names in reversed(self.scopes):
            if name in names:
                return names[name]
        return None

    def undeclared(self, node: Node, name: str) -> CelType:
        self.report(node, f"undeclared reference to '{name}' (in container '')")
        return types.ERROR

    def mismatch(self, node: Node, expected: CelType, found: CelType) -> CelType:
        self.report(node, f"expected type '{expected.text}' but found '{found.text}'")
        return types.ERROR

    def optional(self, node: Node, checked: CelType) -> CelType:
        """The type in an optional one, which it has to be."""
        value, is_optional = unwrap_optional(checked)
        if not is_optional and not types.is_dyn(value):
            self.mismatch(node, types.optional_of(value), value)
        return value

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
        target, is_optional = unwrap_optional(self.resolve(self.check(operand)))
        result = types.ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            known = self.environment.table.messages.get(target.name)
            if known is None or known.type != target:
                self.report(node, f"unexpected failed resolution of '{target.name}'")
            elif name not in known.fields:
                self.report(node, f"undefined field '{name}'")
            else:
                result = known.fields[name]
        elif target.kind == "param":
            self.assignable(types.DYN, target)
            result = types.DYN
        else:
            if not types.is_dyn_or_error(target):
                self.report(node, f"type '{target.text}' does not support field selection")
            result = types.DYN
        return types.optional_of(result) if is_optional or optional else result

    def call(self, node: Call) -> CelType:
        if node.function == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            field.type = types.STRING
            node.overloads = ("select_optional_field",)
            return self.resolve(self.field(node, node.args[0], field.value, optional=True))
        args = [self.check(arg) for arg in node.args]
        functions = self.environment.table.functions
        if node.target is None:
            name = node.function.removeprefix(".")
            if name not in functions:
                return self.undeclared(node, node.function)
            node.function = name
            return self.overload(node, functions[name], args, member=False)
        prefix = qualified_name(node.target)
        if prefix is not None:
            qualified = f"{prefix}.{node.function}".removeprefix(".")
            if qualified in functions:
                node.function, node.target = qualified, None
                return self.overload(node, functions[qualified], args, member=False)
        receiver = self.check(node.target)
        if node.function not in functions:
            return self.undeclared(node, node.function)
        return self.overload(node, functions[node.function], [receiver, *args], member=True)

    def overload(
        self, node: Call, overloads: tuple[Overload, ...], args: list[CelType], *, member: bool
    ) -> CelType:
        if node.function in ("_&&_", "_||_"):
            return self.logical(node, overloads[0], args)
        result: CelType | None = None
        found: list[str] = []
        for overload in overloads:
            if overload.member != member:
                continue
            expected, declared = self.instantiate(overload)
            if not self.bindings.assignable(args, expected):
                continue
            found.append(overload.id)
            declared = self.resolve(declared)
            if result is None:
                result = declared
            elif not types.is_dyn(result) and declared != result:
                result = types.DYN
        if result is None:
            shown = [self.bindings.substitute(arg, free_to_dyn=True) for arg in args]
            text = _signature(shown, member=member)
            self.report(
                node, f"found no matching overload for '{node.function}' applied to '{text}'"
            )
            return types.ERROR
        node.overloads = tuple(found)
        return result

    def logical(self, node: Call, overload: Overload, args: list[CelType]) -> CelType:
        node.overloads = (overload.id,)
        result = types.BOOL
        for arg, checked in zip(node.args, args, strict=True):
            if not self.assignable(checked, types.BOOL):
                self.report(arg, f"expected type 'bool' but found '{checked.text}'")
                result = types.ERROR
        return result

    def instantiate(self, overload: Overload) -> tuple[list[CelType], CelType]:
        """The overload's argument and result types, with type parameters of their own."""
        if not overload.type_params:
            return list(overload.args), overload.result
        names = {name: self.bindings.fresh() for name in overload.type_params}

        def replace(checked: CelType) -> CelType:
            if checked.kind == "param":
                return names[checked.name]
            if not checked.params:
                return checked
            return CelType(checked.kind, checked.name, tuple(map(replace, checked.params)))

        return [replace(arg) for arg in overload.args], replace(overload.result)
