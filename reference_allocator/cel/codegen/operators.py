"""Code for operators and the functions that Python has an operator or method for."""

from __future__ import annotations

from typing import Any, Final

from reference_allocator.api.quantity import Quantity
from reference_allocator.api.semver import Semver
from reference_allocator.cel import types
from reference_allocator.cel.ast import Call, Literal, Node
from reference_allocator.cel.codegen.fields import FieldEmitter
from reference_allocator.cel.codegen.patterns import matcher

_DIRECT_EQUALITY: Final = frozenset({"bool", "int", "uint", "string", "bytes", "double"})
_DIRECT_ORDER: Final = frozenset({"int", "uint", "string", "bytes"})
_ORDER: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_CLASSES: Final[dict[type, str]] = {str: "str", int: "int", bool: "bool"}
_COMPARED: Final = {"isGreaterThan": ">", "isLessThan": "<"}


class OperatorEmitter(FieldEmitter):
    """Uses Python's operators where the static types or a constant allow it."""

    def truth(self, node: Node) -> str:
        """A node as a bool."""
        text = self.emit(node)
        return text if node.type == types.BOOL else f"truth({text})"

    def logical(self, node: Call) -> str:
        """``&&`` and ``||``."""
        operator = " and " if node.function == "_&&_" else " or "
        return f"({operator.join(self.truth(arg) for arg in node.args)})"

    def negation(self, node: Call) -> str:
        """``!``."""
        return f"(not {self.truth(node.args[0])})"

    def conditional(self, node: Call) -> str:
        """``?:``."""
        condition, yes, no = node.args
        return f"({self.emit(yes)} if {self.truth(condition)} else {self.emit(no)})"

    def equality(self, node: Call) -> str:
        """``==`` and ``!=``."""
        text = self.equals(*node.args)
        return text if node.function == "_==_" else f"(not {text})"

    def equals(self, left: Node, right: Node) -> str:
        """Equality of two nodes."""
        if left.type == right.type and left.type.kind in _DIRECT_EQUALITY:
            return f"({self.emit(left)} == {self.emit(right)})"
        for value_node, other in ((left, right), (right, left)):
            known, value = self.fold(value_node)
            if not known:
                continue
            if value.__class__ is Semver:
                return f"({self.emit(other)}.precedence == {self.constant(value.precedence)})"
            if value.__class__ is Quantity and value_node is right:
                return f"({self.emit(other)}.nanos == {value.nanos})"
            if value.__class__ in _CLASSES:
                found, text = self.name("t"), self.literal(value)
                pair = (found, text) if value_node is right else (text, found)
                return self.guarded("==", other, value, found, f"eq({', '.join(pair)})")
        return f"eq({self.emit(left)}, {self.emit(right)})"

    def guarded(self, operator: str, node: Node, value: Any, found: str, otherwise: str) -> str:
        """An operator with a constant, direct when the classes agree; ``found`` names the node."""
        test = f"({found} := {self.emit(node)}).__class__ is {_CLASSES[value.__class__]}"
        direct = f"{found} {operator} {self.literal(value)}"
        return f"({direct} if {test} else {otherwise})"

    def order(self, node: Call) -> str:
        """``<`` and its like."""
        left, right = node.args
        operator = _ORDER[node.function]
        if left.type == right.type and left.type.kind in _DIRECT_ORDER:
            return f"({self.emit(left)} {operator} {self.emit(right)})"
        known, value = self.fold(right)
        if known and value.__class__ in (str, int):
            found = self.name("t")
            otherwise = f"compare({found}, {self.literal(value)}) {operator} 0"
            return self.guarded(operator, left, value, found, otherwise)
        return f"(compare({self.emit(left)}, {self.emit(right)}) {operator} 0)"

    def membership(self, node: Call) -> str:
        """``in``."""
        item, container = node.args
        members = node.members
        if members is not None:
            name = self.constant(members)
            if all(value.__class__ is str for value in members):
                found = self.name("t")
                test = f"({found} := {self.emit(item)}).__class__ is str"
                return f"({found} in {name} if {test} else is_member({name}, {found}))"
            return f"is_member({name}, {self.emit(item)})"
        named = self.named_by(container, item)
        if named is not None:
            return named.present
        if container.type.kind == "map" and item.type == types.STRING:
            return f"({self.emit(item)} in {self.emit(container)})"
        return self.function(node)

    def compared(self, node: Call) -> str:
        """``isGreaterThan`` and ``isLessThan`` of versions and quantities."""
        target, argument = node.target, node.args[0]
        assert target is not None
        operator = _COMPARED[node.function]
        known, value = self.fold(argument)
        if known and value.__class__ is Semver:
            return f"({self.emit(target)}.precedence {operator} {self.constant(value.precedence)})"
        if known and value.__class__ is Quantity:
            return f"({self.emit(target)}.nanos {operator} {value.nanos})"
        if len(node.overloads) == 1:
            field = "precedence" if node.overloads[0].startswith("semver") else "nanos"
            return f"({self.emit(target)}.{field} {operator} {self.emit(argument)}.{field})"
        return self.function(node)

    def size(self, node: Call) -> str:
        """``size()``."""
        argument = node.args[0] if node.target is None else node.target
        if argument.type.kind in ("string", "bytes", "list", "map"):
            return f"len({self.emit(argument)})"
        return self.function(node)

    def affix(self, node: Call) -> str:
        """``startsWith`` and ``endsWith``."""
        method = "startswith" if node.function == "startsWith" else "endswith"
        assert node.target is not None
        argument = node.args[0]
        if argument.type == types.STRING:
            return f"{self.emit(node.target)}.{method}({self.emit(argument)})"
        return self.function(node)

    def matches(self, node: Call) -> str:
        """``matches`` with a constant pattern."""
        text, pattern = node.args if node.target is None else (node.target, *node.args)
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            return f"{self.constant(matcher(pattern.value))}({self.emit(text)})"
        return self.function(node)
