"""What all parts of the code generator share: names, constants and what is known of types."""

from __future__ import annotations

from itertools import starmap
from typing import Any, Final

from reference_allocator.cel import types
from reference_allocator.cel.ast import NOT_FOLDED, Call, Literal, Node
from reference_allocator.cel.codegen.support import NAMESPACE
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.library.dispatch import IMPLEMENTATIONS, implementation
from reference_allocator.cel.runtime.equality import compare, equal
from reference_allocator.cel.runtime.maps import is_member
from reference_allocator.cel.types import CelType

_CONCRETE: Final = frozenset({"string", "int", "uint", "double", "bool", "bytes", "list", "map"})
_PURE: Final = frozenset({"cidr", "ip", "quantity", "semver"})
"""Functions that selectors often call with a constant."""
_SPECIFIC: Final = frozenset({"opaque", "struct", "duration", "timestamp"})


def is_optional(checked: CelType) -> bool:
    """Whether the value is an optional one."""
    return checked.kind == "opaque" and checked.name == "optional_type"


def inner_map(checked: CelType) -> bool:
    """Whether the value is a plain dict: the maps of a device by domain hold maps."""
    return (
        checked.kind == "map" and checked.params[1].kind not in ("map", "dyn", "any", "param")
    ) or (
        checked.kind == "map"
        and checked.params[0] == types.STRING
        and checked.params[1].kind in ("dyn", "any")
    )


def is_certain(checked: CelType) -> bool:
    """Whether the evaluation can only meet values of the type."""
    return checked.kind in _CONCRETE or checked.kind in _SPECIFIC


class Emitter:
    """The state of one generation.

    Attributes:
        globals: what the generated function can name.
        variables: CEL variable -> local name of the function.
        locals: a fold's variables -> names, innermost last.
    """

    def __init__(self, *, device: bool) -> None:
        self.device = device
        self.globals: dict[str, Any] = {
            **NAMESPACE,
            "compare": compare,
            "eq": equal,
            "is_member": is_member,
            "starmap": starmap,
        }
        self.variables: dict[str, str] = {}
        self.locals: list[dict[str, str]] = []
        self.count = 0

    def name(self, prefix: str) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, value: Any) -> str:
        """The name of a value among the function's globals."""
        name = self.name("k")
        self.globals[name] = value
        return name

    def emit(self, node: Node) -> str:
        """Python text for a node."""
        raise NotImplementedError

    # Constants

    def fold(self, node: Node) -> tuple[bool, Any]:
        """Whether the value is known now, and which."""
        if isinstance(node, Literal):
            return True, node.value
        if isinstance(node, Call) and node.folded is not NOT_FOLDED:
            return True, node.folded
        if isinstance(node, Call) and node.target is None and node.overloads:
            if node.function not in _PURE or len(node.overloads) != 1:
                return False, None
            values = [self.fold(arg) for arg in node.args]
            if all(known for known, _ in values):
                try:
                    call = implementation(node.function, node.overloads)
                    return True, call(*(value for _, value in values))
                except CelRuntimeError:
                    return False, None
        return False, None

    def literal(self, value: Any) -> str:
        """Python text for a constant."""
        if value is None or value.__class__ in (bool, str, bytes):
            return repr(value)
        if value.__class__ is int:
            return f"({value})" if value < 0 else repr(value)
        return self.constant(value)

    # Calls

    def function(self, node: Call) -> str:
        """A plain call of the implementation."""
        operands = node.args if node.target is None else [node.target, *node.args]
        call = implementation(node.function, node.overloads)
        if len(node.overloads) == 1 and all(is_certain(operand.type) for operand in operands):
            call = IMPLEMENTATIONS.get(node.overloads[0], call)
        args = ", ".join(self.emit(operand) for operand in operands)
        return f"{self.constant(call)}({args})"
