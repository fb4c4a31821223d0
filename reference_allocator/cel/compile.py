"""From source text to a checked tree, and programs about any JSON objects.

Errors are in Kubernetes' words.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from reference_allocator.cel import types
from reference_allocator.cel.ast import Node
from reference_allocator.cel.checker.checker import check
from reference_allocator.cel.checker.validators import validate
from reference_allocator.cel.environment.declarations import Environment, generic_environment
from reference_allocator.cel.errors import CelCompileError, format_issues
from reference_allocator.cel.interpreter.interpreter import Interpreter
from reference_allocator.cel.interpreter.planner import InstantiationError, plan
from reference_allocator.cel.output import to_python
from reference_allocator.cel.types import CelType

MAX_LENGTH: Final = 10 * 1024
"""The longest expression that the API accepts, in bytes (resource.k8s.io/v1 CELDeviceSelector)."""


def compile_node(expression: str, environment: Environment) -> Node:
    """A checked tree.

    Raises:
        CelCompileError: too long, no expression, or one of the wrong types.
    """
    # The parser generator takes longest to import, and not every process compiles an expression.
    from reference_allocator.cel.parser.builder import parse
    from reference_allocator.cel.parser.helper import ParseError

    if len(expression.encode(errors="surrogatepass")) > MAX_LENGTH:
        raise CelCompileError(f"expression is longer than {MAX_LENGTH} bytes")
    try:
        node = parse(expression)
        issues = check(node, environment) or validate(node)
    except ParseError as error:
        message = f"compilation failed: {format_issues(expression, error.issues)}"
        raise CelCompileError(message) from None
    except RecursionError:
        raise CelCompileError(
            "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
        ) from None
    if issues:
        raise CelCompileError(f"compilation failed: {format_issues(expression, issues)}")
    return node


def instantiate(node: Node) -> None:
    """What cel-go finds out when it builds the program; raises CelCompileError."""
    try:
        plan(node)
    except InstantiationError as error:
        raise CelCompileError(f"program instantiation failed: {error}") from None


DYN: Final = types.DYN


class Program:
    """A compiled expression over named JSON values. Thread-safe."""

    def __init__(self, node: Node) -> None:
        self.type: CelType = node.type
        self._node = node

    def evaluate(self, variables: Mapping[str, Any], *, deadline: float | None = None) -> Any:
        """The value as plain Python data: bool, int, float, str, bytes, list, dict or None.

        Optional values become their value or None, quantities and the like their text.

        Args:
            variables: name -> JSON value.
            deadline: when to give up, of `time.monotonic`; None for never.

        Raises:
            CelRuntimeError: the expression has no value.
            CelInterruptedError: (a CelRuntimeError) the deadline has passed.
        """
        scope = {f".{name}": value for name, value in variables.items()}
        return to_python(Interpreter(None, deadline).run(self._node, scope))


@lru_cache(maxsize=4096)
def _cached_program(expression: str, names: tuple[tuple[str, CelType], ...]) -> Program | str:
    try:
        node = compile_node(expression, generic_environment(dict(names)))
        instantiate(node)
        return Program(node)
    except CelCompileError as error:
        return str(error)


def compile_expression(expression: str, variables: Mapping[str, CelType]) -> Program:
    """An expression over JSON values, with the same functions as a selector.

    Args:
        expression: for example ``size(object.status.reservedFor) == 1``.
        variables: name -> type, usually `DYN`.

    Raises:
        CelCompileError: as Kubernetes would reject it.
    """
    found = _cached_program(expression, tuple(sorted(variables.items())))
    if isinstance(found, str):
        raise CelCompileError(found)
    return found
