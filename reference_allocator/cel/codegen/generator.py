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

from reference_allocator.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListExpr,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from reference_allocator.cel.codegen.operators import OperatorEmitter


class _UnsupportedError(Exception):
    """The expression has a part that only the interpreter evaluates: protobuf messages are rare."""


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
            case StructExpr():
                raise _UnsupportedError
            case _:
                raise AssertionError(type(node))

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
            f"map_key({self.emit(entry.key)}): {self.emit(entry.value)}" for entry in node.entries
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
            scope = self.binding(node.accu_var, node.accu_init)
            if scope is not None:
                self.locals.append(scope)
                text = self.emit(node.parts[0])
                self.locals.pop()
                return text
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
    "matches": _Generator.matches,
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
        The function, or None where Python cannot compile an expression nested that deeply, or where
        it builds a protobuf message.
    """
    generator = _Generator(device=device)
    try:
        body = generator.emit(node)
        argument = "device" if device else "scope"
        loads = "".join(
            f"    {local} = scope[{name!r}]\n" for name, local in generator.variables.items()
        )
        loads += "".join(
            f"    {local} = device.driver == {domain!r}\n"
            for domain, local in generator.owned.items()
        )
        source = f"def evaluate({argument}):\n{loads}    return {body}\n"
        namespace = generator.globals
        exec(compile(source, "<cel>", "exec"), namespace)  # noqa: S102 - see the docstring above
    except (RecursionError, MemoryError, SyntaxError, _UnsupportedError):
        return None, ""
    evaluate: Callable[[Any], Any] = namespace["evaluate"]
    return evaluate, source
