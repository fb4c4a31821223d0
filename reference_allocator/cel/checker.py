"""The type checker: what Kubernetes rejects when an expression is written, not when it runs.

The rules, the order in which they are applied and the messages are cel-go's
(``checker/checker.go``), because the text of a rejection is part of what users see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reference_allocator.cel import types
from reference_allocator.cel.ast import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from reference_allocator.cel.declarations import Environment, Overload, type_value
from reference_allocator.cel.errors import Issue
from reference_allocator.cel.runtime.values import UInt
from reference_allocator.cel.types import Bindings, CelType

__all__ = ["check"]

_LITERAL_TYPES = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


def _signature(args: list[CelType], *, member: bool) -> str:
    texts = [item.text for item in args]
    return f"{texts[0]}.({', '.join(texts[1:])})" if member else f"({', '.join(texts)})"


def _unwrap_optional(checked: CelType) -> tuple[CelType, bool]:
    if checked.kind == "opaque" and checked.name == "optional_type":
        return checked.params[0], True
    return checked, False


def _qualified_name(node: Node) -> str | None:
    """``a.b.c`` of plain selections on a name."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(names)]) if isinstance(node, Ident) else None


class _Checker:
    """One check of one expression; sets ``type``, ``overloads`` and the kind of each name."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.bindings = Bindings()
        self.issues: list[Issue] = []
        self.scopes: list[dict[str, CelType]] = []
        self.nodes: list[Node] = []

    def report(self, node: Node, message: str) -> None:
        self.issues.append(Issue(node.offset, message))

    def resolve(self, checked: CelType) -> CelType:
        return self.bindings.substitute(checked, free_to_dyn=False)

    def assignable(self, first: CelType, second: CelType) -> bool:
        return self.bindings.assignable([first], [second])

    @contextmanager
    def scope(self, names: dict[str, CelType]) -> Iterator[None]:
        self.scopes.append(names)
        yield
        self.scopes.pop()

    def check(self, node: Node) -> CelType:
        match node:
            case Literal():
                checked = _LITERAL_TYPES[type(node.value)]
            case Ident():
                checked = self.ident(node)
            case Select():
                checked = self.select(node)
            case Call():
                checked = self.call(node)
            case ListExpr():
                checked = self.list(node)
            case MapExpr():
                checked = self.map(node)
            case StructExpr():
                checked = self.struct(node)
            case Comprehension():
                checked = self.comprehension(node)
            case _:
                raise AssertionError(type(node))
        node.type = checked
        self.nodes.append(node)
        return checked

    # Names

    def local(self, name: str) -> CelType | None:
        for names in reversed(self.scopes):
            if name in names:
                return names[name]
        return None

    def undeclared(self, node: Node, name: str) -> CelType:
        self.report(node, f"undeclared reference to '{name}' (in container '')")
        return types.ERROR

    def ident(self, node: Ident) -> CelType:
        if not node.name.startswith("."):
            local = self.local(node.name)
            if local is not None:
                node.local = True
                return local
        name = node.name.removeprefix(".")
        if name in self.environment.variables:
            return self.environment.variables[name]
        named = self.environment.type_names.get(name)
        if named is not None:
            node.constant = type_value(named)
            return types.type_of(named)
        return self.undeclared(node, node.name)

    def select(self, node: Select) -> CelType:
        if not node.test_only:
            name = _qualified_name(node)
            if name is not None and self.local(name.split(".", 1)[0]) is None:
                named = self.environment.type_names.get(name.removeprefix("."))
                if named is not None:
                    node.constant = type_value(named)
                    return types.type_of(named)
        result = self.field(node, node.operand, node.field, optional=False)
        return types.BOOL if node.test_only else self.resolve(result)

    def field(self, node: Node, operand: Node, name: str, *, optional: bool) -> CelType:
        target, is_optional = _unwrap_optional(self.resolve(self.check(operand)))
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

    # Calls

    def call(self, node: Call) -> CelType:
        if node.function == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            field.type = types.STRING
            node.overloads = ("select_optional_field",)
            return self.resolve(self.field(node, node.args[0], field.value, optional=True))
        args = [self.check(arg) for arg in node.args]
        functions = self.environment.functions
        if node.target is None:
            name = node.function.removeprefix(".")
            if name not in functions:
                return self.undeclared(node, node.function)
            node.function = name
            return self.overload(node, functions[name], args, member=False)
        prefix = _qualified_name(node.target)
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

    # Aggregates

    def mismatch(self, node: Node, expected: CelType, found: CelType) -> CelType:
        self.report(node, f"expected type '{expected.text}' but found '{found.text}'")
        return types.ERROR

    def join(self, previous: CelType | None, current: CelType) -> CelType:
        if previous is None:
            return current
        if self.assignable(previous, current):
            return types.join(previous, current)
        return types.DYN  # a validator reports it, unless the literal belongs to ``format``

    def optional(self, node: Node, checked: CelType) -> CelType:
        value, is_optional = _unwrap_optional(checked)
        if not is_optional and not types.is_dyn(value):
            self.mismatch(node, types.optional_of(value), value)
        return value

    def list(self, node: ListExpr) -> CelType:
        joined: CelType | None = None
        for index, element in enumerate(node.elements):
            checked = self.check(element)
            if index in node.optional:
                checked = self.optional(element, checked)
            joined = self.join(joined, checked)
        return types.list_of(joined or self.bindings.fresh())

    def map(self, node: MapExpr) -> CelType:
        key_type: CelType | None = None
        value_type: CelType | None = None
        for entry in node.entries:
            key_type = self.join(key_type, self.check(entry.key))
            checked = self.check(entry.value)
            if entry.optional:
                checked = self.optional(entry.value, checked)
            value_type = self.join(value_type, checked)
        return types.map_of(key_type or self.bindings.fresh(), value_type or self.bindings.fresh())

    def struct(self, node: StructExpr) -> CelType:
        # No Kubernetes environment for selectors has message types that can be constructed.
        self.undeclared(node, node.type_name)
        for entry in node.entries:
            self.check_entry(entry)
        return types.ERROR

    def check_entry(self, entry: Entry) -> None:
        entry.key.type = types.STRING
        self.check(entry.value)

    # Folds

    def comprehension(self, node: Comprehension) -> CelType:
        range_type = self.resolve(self.check(node.iter_range))
        accu_type = self.check(node.accu_init)
        with self.scope({node.accu_var: accu_type}):
            with self.scope(self.iteration_types(node, self.resolve(range_type))):
                self.require(node.condition, types.BOOL)
                self.require(node.step, accu_type)
            result = self.check(node.result)
        return self.resolve(result)

    def iteration_types(self, node: Comprehension, range_type: CelType) -> dict[str, CelType]:
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

    def require(self, node: Node, expected: CelType) -> None:
        checked = self.check(node)
        if not self.assignable(expected, checked):
            self.mismatch(node, expected, checked)


def check(node: Node, environment: Environment) -> list[Issue]:
    """Annotate the tree with types and overloads.

    Returns:
        What is wrong with the expression; when empty, each node has its final ``type``.
    """
    checker = _Checker(environment)
    checker.check(node)
    for checked in checker.nodes:
        checked.type = checker.bindings.substitute(checked.type, free_to_dyn=True)
    return checker.issues
