"""Python source for a checked expression: the fast path of the evaluation.

The generated function is right for every evaluation in which nothing goes wrong; whatever it
raises, of whatever kind, the interpreter then evaluates the same expression by the book. That lets
it use Python's own operators wherever the types are known, with no code for errors.

User text never becomes code: strings and field names are emitted through ``repr``, other constants
and all functions are names of our own in the function's globals.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from typing import Any, Final

from reference_allocator.cel import types
from reference_allocator.cel.ast import (
    NOT_FOLDED,
    Call,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
)
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.dispatch import IMPLEMENTATIONS, implementation
from reference_allocator.cel.runtime.equality import compare, equal
from reference_allocator.cel.runtime.membership import constant_set, is_member
from reference_allocator.cel.runtime.support import NAMESPACE, GiveUp
from reference_allocator.cel.runtime.values import map_key
from reference_allocator.cel.types import CelType
from reference_allocator.quantity import Quantity
from reference_allocator.semver import Semver

__all__ = ["generate"]

_DEVICE_FIELDS: Final = {
    "driver": "driver",
    "attributes": "attributes",
    "capacity": "capacity",
    "allowMultipleAllocations": "allow_multiple_allocations",
}
_DIRECT_EQUALITY: Final = frozenset({"bool", "int", "uint", "string", "bytes", "double"})
_DIRECT_ORDER: Final = frozenset({"int", "uint", "string", "bytes"})
_ORDER: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_CLASSES: Final[dict[type, str]] = {str: "str", int: "int", bool: "bool"}
_COMPARED: Final = {"isGreaterThan": ">", "isLessThan": "<"}
_CONCRETE: Final = frozenset({"string", "int", "uint", "double", "bool", "bytes", "list", "map"})
_SPECIFIC: Final = frozenset({"opaque", "struct", "duration", "timestamp"})


class _Generator:
    """Emits one expression; ``emit`` gives Python text for a node."""

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
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, value: Any) -> str:
        name = self.name("k")
        self.globals[name] = value
        return name

    def emit(self, node: Node) -> str:
        known, value = self.fold(node)
        if known:
            return self.literal(value)
        match node:
            case Ident():
                return self.ident(node)
            case Select():
                return self.select(node)
            case Call():
                emitter = _CALLS.get(node.function)
                return self.function(node) if emitter is None else emitter(self, node)
            case ListExpr():
                return self.list(node)
            case MapExpr():
                return self.map(node)
            case Comprehension():
                return self.comprehension(node)
            case _:
                raise AssertionError(type(node))

    # Constants

    def fold(self, node: Node) -> tuple[bool, Any]:
        """Whether the value is known now, and which."""
        if isinstance(node, Literal):
            return True, node.value
        if isinstance(node, Call) and node.folded is not NOT_FOLDED:
            return True, node.folded
        if isinstance(node, Call) and node.target is None and node.overloads:
            if node.function not in ("semver", "quantity") or len(node.overloads) != 1:
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
        if value is None or value.__class__ in (bool, str, bytes):
            return repr(value)
        if value.__class__ is int:
            return f"({value})" if value < 0 else repr(value)
        return self.constant(value)

    # Names, fields and indices

    def ident(self, node: Ident) -> str:
        if node.constant is not None:
            return self.constant(node.constant)
        if node.local:
            for names in reversed(self.locals):
                if node.name in names:
                    return names[node.name]
            raise AssertionError(node.name)
        name = node.name.removeprefix(".")
        if self.device:
            return "device.as_map"
        return self.variables.setdefault(name, f"v{len(self.variables)}")

    def select(self, node: Select) -> str:
        if node.constant is not None:
            return self.constant(node.constant)
        operand = node.operand
        if self.device and isinstance(operand, Ident) and not operand.local:
            if node.test_only:
                return "True"  # the checker knows the field, and it is always set
            if operand.constant is None:
                return f"device.{_DEVICE_FIELDS[node.field]}"
        inner = self.emit(operand)
        if node.test_only:
            if _inner_map(operand.type):
                return f"({node.field!r} in {inner})"
            return f"has_field({inner}, {node.field!r})"
        if _is_optional(operand.type):
            return f"select_optional({inner}, {node.field!r})"
        return f"{inner}[{node.field!r}]"

    def index(self, node: Call) -> str:
        container, key = node.args
        inner = self.emit(container)
        if _is_optional(container.type):
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
        return f"select_optional({self.emit(node.args[0])}, {self.emit(node.args[1])})"

    def or_value(self, node: Call) -> str:
        target = node.target
        assert target is not None
        default = self.emit(node.args[0])
        if isinstance(target, Call) and target.function in ("_?._", "_[?_]"):
            container, key = target.args
            if (
                isinstance(key, Literal)
                and isinstance(key.value, str)
                and _inner_map(container.type)
            ):
                found = self.name("t")
                value = f"({found} := {self.emit(container)}.get({key.value!r}, MISSING))"
                return f"({default} if {value} is MISSING else {found})"
        return f"or_value({self.emit(target)}, {default})"

    # Operators

    def truth(self, node: Node) -> str:
        text = self.emit(node)
        return text if node.type == types.BOOL else f"truth({text})"

    def logical(self, node: Call) -> str:
        operator = " and " if node.function == "_&&_" else " or "
        return f"({operator.join(self.truth(arg) for arg in node.args)})"

    def negation(self, node: Call) -> str:
        return f"(not {self.truth(node.args[0])})"

    def conditional(self, node: Call) -> str:
        condition, yes, no = node.args
        return f"({self.emit(yes)} if {self.truth(condition)} else {self.emit(no)})"

    def equality(self, node: Call) -> str:
        text = self.equals(*node.args)
        return text if node.function == "_==_" else f"(not {text})"

    def equals(self, left: Node, right: Node) -> str:
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
                return self.guarded(
                    "==",
                    other,
                    value,
                    f"eq({{}}, {self.literal(value)})"
                    if value_node is right
                    else f"eq({self.literal(value)}, {{}})",
                )
        return f"eq({self.emit(left)}, {self.emit(right)})"

    def guarded(self, operator: str, node: Node, value: Any, otherwise: str) -> str:
        """An operator with a constant on the right, direct when the classes agree."""
        found = self.name("t")
        test = f"({found} := {self.emit(node)}).__class__ is {_CLASSES[value.__class__]}"
        direct = f"{found} {operator} {self.literal(value)}"
        return f"({direct} if {test} else {otherwise.format(found)})"

    def order(self, node: Call) -> str:
        left, right = node.args
        operator = _ORDER[node.function]
        if left.type == right.type and left.type.kind in _DIRECT_ORDER:
            return f"({self.emit(left)} {operator} {self.emit(right)})"
        known, value = self.fold(right)
        if known and value.__class__ in (str, int):
            otherwise = f"compare({{}}, {self.literal(value)}) {operator} 0"
            return self.guarded(operator, left, value, otherwise)
        return f"(compare({self.emit(left)}, {self.emit(right)}) {operator} 0)"

    def membership(self, node: Call) -> str:
        item, container = node.args
        members = constant_set(node)
        if members is not None:
            name = self.constant(members)
            if all(value.__class__ is str for value in members):
                found = self.name("t")
                test = f"({found} := {self.emit(item)}).__class__ is str"
                return f"({found} in {name} if {test} else is_member({name}, {found}))"
            return f"is_member({name}, {self.emit(item)})"
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
        argument = node.args[0] if node.target is None else node.target
        if argument.type.kind in ("string", "bytes", "list", "map"):
            return f"len({self.emit(argument)})"
        return self.function(node)

    def affix(self, node: Call) -> str:
        method = "startswith" if node.function == "startsWith" else "endswith"
        assert node.target is not None
        argument = node.args[0]
        if argument.type == types.STRING:
            return f"{self.emit(node.target)}.{method}({self.emit(argument)})"
        return self.function(node)

    def function(self, node: Call) -> str:
        operands = node.args if node.target is None else [node.target, *node.args]
        call = implementation(node.function, node.overloads)
        if len(node.overloads) == 1 and all(_certain(operand.type) for operand in operands):
            call = IMPLEMENTATIONS.get(node.overloads[0], call)
        args = ", ".join(self.emit(operand) for operand in operands)
        return f"{self.constant(call)}({args})"

    # Aggregates and folds

    def list(self, node: ListExpr) -> str:
        parts = []
        for index, element in enumerate(node.elements):
            text = self.emit(element)
            if index in node.optional:
                found = self.name("t")
                text = f"*([{found}.value] if ({found} := {text}).present else ())"
            parts.append(text)
        return f"[{', '.join(parts)}]"

    def map(self, node: MapExpr) -> str:
        if any(entry.optional for entry in node.entries):
            name = self.constant(_optional_map)
            entries = ", ".join(
                f"({self.emit(entry.key)}, {self.emit(entry.value)}, {entry.optional})"
                for entry in node.entries
            )
            return f"{name}([{entries}])"
        key = self.constant(_literal_key)
        entries = ", ".join(
            f"{key}({self.emit(entry.key)}): {self.emit(entry.value)}" for entry in node.entries
        )
        return f"{{{entries}}}"

    def function_of(self, names: tuple[str, ...], body: Node, *, boolean: bool = False) -> str:
        """A lambda with CEL variables as parameters."""
        scope = {name: self.name("x") for name in names if name}
        parameters = ", ".join(scope[name] for name in names if name)
        self.locals.append(scope)
        text = self.truth(body) if boolean else self.emit(body)
        self.locals.pop()
        return f"(lambda {parameters}: {text})"

    def comprehension(self, node: Comprehension) -> str:
        if node.macro == "bind":
            value = self.emit(node.accu_init)
            return f"{self.function_of((node.accu_var,), node.parts[0])}({value})"
        names = (node.iter_var, node.iter_var2)
        visited = self.emit(node.iter_range)
        over, visit = ("map", "items") if not node.iter_var2 else ("starmap", "pairs")
        if node.macro in ("all", "exists", "exists_one"):
            predicate = self.function_of(names, node.parts[0], boolean=True)
            results = f"{over}({predicate}, {visit}({visited}))"
            if node.macro == "exists_one":
                return f"(sum({results}) == 1)"
            return f"{'all' if node.macro == 'all' else 'any'}({results})"
        keep = "None"
        if node.macro == "filter" or len(node.parts) == 2:
            keep = self.function_of(names, node.parts[0], boolean=True)
        if node.macro == "filter":
            return f"[*filter({keep}, items({visited}))]"
        transform = self.function_of(names, node.parts[-1])
        if node.macro == "transformMap":
            return f"transform_map({visited}, {keep}, {transform})"
        if node.macro == "transformMapEntry":
            return f"transform_entries({visited}, {keep}, {transform})"
        chosen = f"{visit}({visited})"
        if keep != "None":
            if node.macro == "map":
                chosen = f"filter({keep}, {chosen})"
            else:
                name = self.constant(_filter_pairs)
                chosen = f"{name}({keep}, {chosen})"
        return f"[*{over}({transform}, {chosen})]"


def _filter_pairs(keep: Callable[..., bool], pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [pair for pair in pairs if keep(*pair)]


def _literal_key(key: Any) -> Any:
    if key.__class__ is bytes:  # Go cannot hash bytes
        raise GiveUp
    return map_key(key)


def _optional_map(entries: list[tuple[Any, Any, bool]]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, value, optional in entries:
        if not optional:
            result[_literal_key(key)] = value
        elif value.present:
            result[_literal_key(key)] = value.value
        else:
            result.pop(map_key(key), None)
    return result


def _is_optional(checked: CelType) -> bool:
    return checked.kind == "opaque" and checked.name == "optional_type"


def _inner_map(checked: CelType) -> bool:
    """Whether the value is a plain dict: the maps of a device by domain hold maps."""
    return (
        checked.kind == "map" and checked.params[1].kind not in ("map", "dyn", "any", "param")
    ) or (
        checked.kind == "map"
        and checked.params[0] == types.STRING
        and checked.params[1].kind in ("dyn", "any")
    )


def _certain(checked: CelType) -> bool:
    return checked.kind in _CONCRETE or checked.kind in _SPECIFIC


_CALLS: Final[dict[str, Callable[[_Generator, Call], str]]] = {
    "_&&_": _Generator.logical,
    "_||_": _Generator.logical,
    "!_": _Generator.negation,
    "_?_:_": _Generator.conditional,
    "_==_": _Generator.equality,
    "_!=_": _Generator.equality,
    "_<_": _Generator.order,
    "_<=_": _Generator.order,
    "_>_": _Generator.order,
    "_>=_": _Generator.order,
    "_[_]": _Generator.index,
    "_[?_]": _Generator.optional_index,
    "_?._": _Generator.optional_index,
    "@in": _Generator.membership,
    "orValue": _Generator.or_value,
    "isGreaterThan": _Generator.compared,
    "isLessThan": _Generator.compared,
    "size": _Generator.size,
    "startsWith": _Generator.affix,
    "endsWith": _Generator.affix,
}


def generate(node: Node, *, device: bool) -> tuple[Callable[[Any], Any] | None, str]:
    """A function for a checked expression, and its source.

    Args:
        node: the checked tree.
        device: the argument is a `CelDevice`; otherwise it is a dict from variable to value.

    Returns:
        The function, or None where Python cannot compile an expression nested that deeply.
    """
    generator = _Generator(device=device)
    try:
        body = generator.emit(node)
        argument = "device" if device else "scope"
        loads = "".join(
            f"    {local} = scope[{name!r}]\n" for name, local in generator.variables.items()
        )
        source = f"def evaluate({argument}):\n{loads}    return {body}\n"
        namespace = generator.globals
        exec(compile(source, "<cel>", "exec"), namespace)  # noqa: S102 - see the docstring above
    except (RecursionError, MemoryError, SyntaxError):
        return None, ""
    evaluate: Callable[[Any], Any] = namespace["evaluate"]
    return evaluate, source
