"""Python source for a checked expression: the fast path of the evaluation.

The generated function is right for every evaluation in which nothing goes wrong; whatever it
raises, of whatever kind, the interpreter then evaluates the same expression by the book. That lets
it use Python's own operators wherever the types are known, with no code for errors.

User text never becomes code: strings and field names are emitted through ``repr``, other constants
and all functions are names of our own in the function's globals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reference_allocator.cel import types
from reference_allocator.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
)
from reference_allocator.cel.emitter import inner_map, is_optional
from reference_allocator.cel.emitter_operators import OperatorEmitter

__all__ = ["generate"]

_DEVICE_FIELDS: Final = {
    "driver": "driver",
    "attributes": "attributes",
    "capacity": "capacity",
    "allowMultipleAllocations": "allow_multiple_allocations",
}


class _Generator(OperatorEmitter):
    """Emits one expression."""

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
            if inner_map(operand.type):
                return f"({node.field!r} in {inner})"
            return f"has_field({inner}, {node.field!r})"
        if is_optional(operand.type):
            return f"select_optional({inner}, {node.field!r})"
        return f"{inner}[{node.field!r}]"

    def index(self, node: Call) -> str:
        container, key = node.args
        inner = self.emit(container)
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
                and inner_map(container.type)
            ):
                found = self.name("t")
                value = f"({found} := {self.emit(container)}.get({key.value!r}, MISSING))"
                return f"({default} if {value} is MISSING else {found})"
        return f"or_value({self.emit(target)}, {default})"

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
            entries = ", ".join(
                f"({self.emit(entry.key)}, {self.emit(entry.value)}, {entry.optional})"
                for entry in node.entries
            )
            return f"optional_map([{entries}])"
        entries = ", ".join(
            f"literal_key({self.emit(entry.key)}): {self.emit(entry.value)}"
            for entry in node.entries
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
                chosen = f"filter_pairs({keep}, {chosen})"
        return f"[*{over}({transform}, {chosen})]"


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
