"""What every part of the type checker shares: scopes, type parameters and what is wrong so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reference_allocator.cel import types
from reference_allocator.cel.ast import Ident, Node, Select
from reference_allocator.cel.environment.declarations import Environment
from reference_allocator.cel.errors import Issue
from reference_allocator.cel.types import Bindings, CelType


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


class Checking:
    """One check of one expression; sets ``type``, ``overloads`` and the kind of each name."""

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
