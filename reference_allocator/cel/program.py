"""Compiling and evaluating: parse, check, generate code, and keep the result per expression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from reference_allocator.cel import types
from reference_allocator.cel.ast import Node
from reference_allocator.cel.checker import check
from reference_allocator.cel.codegen import generate
from reference_allocator.cel.constants import InstantiationError, plan
from reference_allocator.cel.cost.estimate import estimate
from reference_allocator.cel.cost.sizes import device_size
from reference_allocator.cel.declarations import (
    CelFeatures,
    Environment,
    device_environment,
    generic_environment,
)
from reference_allocator.cel.derived import output_type_error, to_attribute
from reference_allocator.cel.device import CelDevice
from reference_allocator.cel.errors import CelCompileError, CelRuntimeError, format_issues
from reference_allocator.cel.interpreter import Interpreter
from reference_allocator.cel.output import to_bool, to_python
from reference_allocator.cel.parser import ParseError, parse
from reference_allocator.cel.types import CelType
from reference_allocator.cel.validators import validate

__all__ = [
    "COST_LIMIT",
    "DYN",
    "MAX_LENGTH",
    "DerivedAttribute",
    "Program",
    "Selector",
    "compile_derived",
    "compile_expression",
    "compile_selector",
]

DYN: Final = types.DYN
MAX_LENGTH: Final = 10 * 1024
"""The longest expression that the API accepts, in bytes (resource.k8s.io/v1 CELDeviceSelector)."""

COST_LIMIT: Final = 1_000_000
"""The most that an evaluation may cost (resource.k8s.io/v1 CELSelectorExpressionMaxCost)."""

_DEFAULT_FEATURES: Final = CelFeatures()


def _compile(expression: str, environment: Environment) -> Node:
    """A checked tree; raises CelCompileError."""
    if len(expression.encode(errors="surrogatepass")) > MAX_LENGTH:
        message = f"expression is longer than {MAX_LENGTH} bytes"
        raise CelCompileError(message)
    try:
        node = parse(expression)
        issues = check(node, environment) or validate(node)
    except ParseError as error:
        message = f"compilation failed: {format_issues(expression, error.issues)}"
        raise CelCompileError(message) from None
    except RecursionError:
        message = (
            "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
        )
        raise CelCompileError(message) from None
    if issues:
        message = f"compilation failed: {format_issues(expression, issues)}"
        raise CelCompileError(message)
    return node


def _instantiate(node: Node) -> None:
    """What cel-go finds out when it builds the program; raises CelCompileError."""
    try:
        plan(node)
    except InstantiationError as error:
        message = f"program instantiation failed: {error}"
        raise CelCompileError(message) from None


class Selector:
    """A compiled device selector. Thread-safe.

    Attributes:
        max_cost: the most that an evaluation can cost; the API refuses new expressions beyond
            `COST_LIMIT`.
        source: the generated Python function, empty when there is none.
    """

    __slots__ = ("_cost_limit", "_evaluate", "_node", "expression", "max_cost", "source", "type")

    def __init__(self, expression: str, node: Node, cost_limit: int) -> None:
        self.expression = expression
        self.type: CelType = node.type
        self.max_cost = estimate(node, device_size)
        self._node = node
        self._cost_limit = cost_limit
        self._evaluate, self.source = generate(node, device=True)
        if self.max_cost > cost_limit:  # only the interpreter counts
            self._evaluate = None

    def matches(self, device: CelDevice) -> bool:
        """Whether the device is selected.

        Raises:
            CelRuntimeError: the expression has no value, or one that is not a bool.
        """
        if self._evaluate is not None:
            try:
                result = self._evaluate(device)
            except Exception:  # noqa: BLE001 - any failure means: ask the interpreter
                result = None
            if result is True or result is False:
                return bool(result)
        return self.interpret(device)

    def interpret(self, device: CelDevice) -> bool:
        """`matches` without generated code: slower, by the same rules."""
        return to_bool(self.evaluate(device))

    def evaluate(self, device: CelDevice) -> Any:
        """The value for the device, by the interpreter; raises CelRuntimeError."""
        return self.evaluate_with_cost(device)[0]

    def evaluate_with_cost(self, device: CelDevice) -> tuple[Any, int]:
        """The value for the device and what it cost; raises CelRuntimeError."""
        interpreter = Interpreter(self._cost_limit)
        value = _interpret(interpreter, self._node, {".device": device.as_map})
        return value, interpreter.cost


class DerivedAttribute:
    """A compiled expression whose value is a device attribute. Thread-safe."""

    __slots__ = ("_cost_limit", "_node", "expression", "max_cost", "type")

    def __init__(self, expression: str, node: Node, cost_limit: int) -> None:
        self.expression = expression
        self.type: CelType = node.type
        self.max_cost = estimate(node, device_size)
        self._node = node
        self._cost_limit = cost_limit

    def attribute(self, device: CelDevice) -> dict[str, Any]:
        """The attribute of a device, as a v1 DeviceAttribute such as ``{"string": "a"}``.

        Raises:
            CelRuntimeError: the expression has no value, or one that is no attribute.
        """
        interpreter = Interpreter(self._cost_limit)
        return to_attribute(_interpret(interpreter, self._node, {".device": device.as_map}))


def _interpret(interpreter: Interpreter, node: Node, scope: dict[str, Any]) -> Any:
    try:
        return interpreter.run(node, scope)
    except RecursionError:
        message = "expression is nested too deeply to be evaluated"
        raise CelRuntimeError(message) from None


class Program:
    """A compiled expression over named JSON values. Thread-safe."""

    __slots__ = ("_evaluate", "_node", "expression", "source", "type")

    def __init__(self, expression: str, node: Node) -> None:
        self.expression = expression
        self.type: CelType = node.type
        self._node = node
        self._evaluate, self.source = generate(node, device=False)

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value as plain Python data: bool, int, float, str, bytes, list, dict or None.

        Optional values become their value or None, quantities and the like their text.

        Raises:
            CelRuntimeError: the expression has no value.
        """
        if self._evaluate is not None:
            try:
                return to_python(self._evaluate(variables))
            except Exception:  # noqa: BLE001, S110 - any failure means: ask the interpreter
                pass
        return self.interpret(variables)

    def interpret(self, variables: Mapping[str, Any]) -> Any:
        """`evaluate` without generated code: slower, by the same rules."""
        scope = {f".{name}": value for name, value in variables.items()}
        return to_python(_interpret(Interpreter(), self._node, scope))


@lru_cache(maxsize=4096)
def _cached_selector(expression: str, features: CelFeatures, cost_limit: int) -> Selector | str:
    """The selector, or the text of its compile error."""
    environment = device_environment(features)
    attribute = environment.fields["kubernetes.DRADevice"]["attributes"].params[1].params[1]
    try:
        node = _compile(expression, environment)
        if node.type not in (types.BOOL, attribute):
            return f"must evaluate to bool or the unknown type, not {node.type.declared}"
        _instantiate(node)
    except CelCompileError as error:
        return str(error)
    return Selector(expression, node, cost_limit)


@lru_cache(maxsize=1024)
def _cached_derived(
    expression: str, features: CelFeatures, cost_limit: int
) -> DerivedAttribute | str:
    """The derived attribute, or the text of its compile error."""
    lists = features.stored or features.list_type_attributes
    try:
        node = _compile(expression, device_environment(features))
        problem = output_type_error(node.type, lists=lists)
        if problem:
            return problem
        _instantiate(node)
    except CelCompileError as error:
        return str(error)
    return DerivedAttribute(expression, node, cost_limit)


def compile_selector(
    expression: str,
    *,
    features: CelFeatures = _DEFAULT_FEATURES,
    cost_limit: int = COST_LIMIT,
) -> Selector:
    """A device selector, compiled as the scheduler does.

    Args:
        expression: its source.
        features: what it may use; by default everything, as the scheduler allows.
        cost_limit: where an evaluation is stopped with an error.

    Raises:
        CelCompileError: as Kubernetes would reject it.
    """
    found = _cached_selector(expression, features, cost_limit)
    if isinstance(found, str):
        raise CelCompileError(found)
    return found


def compile_derived(
    expression: str,
    *,
    features: CelFeatures = _DEFAULT_FEATURES,
    cost_limit: int = COST_LIMIT,
) -> DerivedAttribute:
    """A derived attribute of a request; arguments and errors as `compile_selector`."""
    found = _cached_derived(expression, features, cost_limit)
    if isinstance(found, str):
        raise CelCompileError(found)
    return found


@lru_cache(maxsize=4096)
def _cached_program(expression: str, names: tuple[tuple[str, CelType], ...]) -> Program | str:
    try:
        node = _compile(expression, generic_environment(dict(names)))
        _instantiate(node)
        return Program(expression, node)
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
