"""From source text to a checked tree, with the errors in Kubernetes' words."""

from __future__ import annotations

from typing import Final

from reference_allocator.cel.ast import Node
from reference_allocator.cel.checker.checker import check
from reference_allocator.cel.checker.validators import validate
from reference_allocator.cel.environment.declarations import Environment
from reference_allocator.cel.errors import CelCompileError, format_issues
from reference_allocator.cel.interpreter.planner import InstantiationError, plan

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
