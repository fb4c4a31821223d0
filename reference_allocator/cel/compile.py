"""The compilation of source text to a checked tree, for selectors and derived attributes.

Each is compiled once per expression and evaluated per device, or over any JSON objects. New and
changed expressions are validated as the API server does, with what the cluster's gates allow
(``validateCELExpression`` in ``pkg/apis/resource/validation/validation.go``); stored ones are not
looked at again. Errors are in Kubernetes' words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from reference_allocator.api.quoting import go_quote
from reference_allocator.cel import types
from reference_allocator.cel.ast import Node
from reference_allocator.cel.checker.checker import check
from reference_allocator.cel.checker.validators import validate
from reference_allocator.cel.cost.estimate import estimate
from reference_allocator.cel.device import CelDevice
from reference_allocator.cel.environment.declarations import (
    CelFeatures,
    Environment,
    device_environment,
    generic_environment,
)
from reference_allocator.cel.errors import CelCompileError, format_issues
from reference_allocator.cel.interpreter.interpreter import Interpreter
from reference_allocator.cel.interpreter.planner import InstantiationError, plan
from reference_allocator.cel.output import output_type_error, to_attribute, to_bool, to_python
from reference_allocator.cel.types import CelType
from reference_allocator.gates import MINORS

MAX_LENGTH: Final = 10 * 1024
"""The longest expression that the API accepts, in bytes (resource.k8s.io/v1 CELDeviceSelector)."""
COST_LIMIT: Final = 1_000_000
"""The most that an evaluation may cost (resource.k8s.io/v1 CELSelectorExpressionMaxCost)."""
DYN: Final = types.DYN

_INSTANTIATION: Final = "program instantiation failed: "
_DEFAULT_FEATURES: Final = CelFeatures()
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _compile_tree(
    expression: str, environment: Environment, type_problem: Callable[[CelType], str]
) -> Node:
    """Return a checked and planned tree.

    Raises CelCompileError: the text is too long, no expression, one of the wrong type, or has a
    constant that cel-go refuses when it builds the program.
    """
    # The parser generator takes longest to import, and not every process compiles an expression.
    from reference_allocator.cel.parser.builder import parse
    from reference_allocator.cel.parser.helper import ParseError

    if _size_in_bytes(expression) > MAX_LENGTH:
        raise CelCompileError(f"expression is longer than {MAX_LENGTH} bytes")
    failed = "compilation failed: "
    try:
        node = parse(expression)
        issues = check(node, environment) or validate(node)
    except ParseError as error:
        issues = error.issues
    except RecursionError:
        text = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
        raise CelCompileError(f"{failed}{text}") from None
    if issues:
        raise CelCompileError(f"{failed}{format_issues(expression, issues)}")
    problem = type_problem(node.type)
    if problem:
        raise CelCompileError(problem)
    try:
        plan(node)
    except InstantiationError as error:
        raise CelCompileError(f"{_INSTANTIATION}{error}") from None
    return node


def _size_in_bytes(expression: str) -> int:
    return len(expression.encode(errors="surrogatepass"))


def _remembered(compiling: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return the function with a memory for what it returned or which CelCompileError it raised."""

    @lru_cache(maxsize=4096)
    def outcome(*args: Any, **named: Any) -> Any:
        try:
            return compiling(*args, **named)
        except CelCompileError as error:
            return str(error)

    @wraps(compiling)
    def call(*args: Any, **named: Any) -> _T:
        outcome_or_error = outcome(*args, **named)
        if isinstance(outcome_or_error, str):
            raise CelCompileError(outcome_or_error)
        return outcome_or_error  # type: ignore[no-any-return]

    return call


class Program:
    """A compiled expression over named JSON values. Thread-safe."""

    def __init__(self, node: Node) -> None:
        self.type: CelType = node.type
        self._node = node

    def evaluate(self, variables: Mapping[str, Any], *, deadline: float | None = None) -> Any:
        """Return the value as plain Python data: bool, int, float, str, bytes, list, dict or None.

        Optional values become their value or None, quantities and the like their text.

        Args:
            variables: name -> JSON value.
            deadline: the `time.monotonic` at which to give up; None for never.

        Raises:
            CelRuntimeError: the expression has no value.
            CelInterruptedError: (a CelRuntimeError) the deadline has passed.
        """
        scope = {f".{name}": value for name, value in variables.items()}
        return to_python(Interpreter(None, deadline).run(self._node, scope))


@_remembered
def _compile_program(expression: str, variables: tuple[tuple[str, CelType], ...]) -> Program:
    return Program(_compile_tree(expression, generic_environment(dict(variables)), lambda _: ""))


def compile_expression(expression: str, variables: Mapping[str, CelType]) -> Program:
    """Compile an expression over JSON values, with the same functions as a selector.

    Args:
        expression: for example ``size(object.status.reservedFor) == 1``.
        variables: name -> type, usually `DYN`.

    Raises CelCompileError: as Kubernetes would reject it.
    """
    return _compile_program(expression, tuple(sorted(variables.items())))


class _DeviceExpression:
    """A compiled expression about a device. Thread-safe.

    Attributes:
        type: the static type of its value.
        max_cost: the most that an evaluation can cost; the API refuses new expressions beyond
            `COST_LIMIT`.
    """

    def __init__(self, node: Node, environment: Environment) -> None:
        self.type: CelType = node.type
        self._since_1_38 = environment.is_since("1.38")
        self.max_cost = estimate(node, since_1_38=self._since_1_38)
        self._node = node

    def _evaluate(self, device: CelDevice, deadline: float | None) -> Any:
        interpreter = Interpreter(COST_LIMIT, deadline, since_1_38=self._since_1_38)
        return interpreter.run(self._node, {".device": device.as_map})


class Selector(_DeviceExpression):
    """A compiled device selector. Thread-safe."""

    def matches(self, device: CelDevice, *, deadline: float | None = None) -> bool:
        """Return whether the device is selected.

        ``deadline``: the `time.monotonic` at which to give up; None for never, as the cost limit
        ends every evaluation within a second or so.

        Raises:
            CelRuntimeError: the expression has no value, or one that is not a bool.
            CelInterruptedError: (a CelRuntimeError) the deadline has passed.
        """
        return to_bool(self._evaluate(device, deadline))


class DerivedAttribute(_DeviceExpression):
    """A compiled expression whose value is a device attribute. Thread-safe."""

    def compute_attribute(
        self, device: CelDevice, *, deadline: float | None = None
    ) -> dict[str, Any]:
        """Return the attribute of a device, a v1 DeviceAttribute such as ``{"string": "a"}``.

        ``deadline``: the `time.monotonic` at which to give up; None for never.
        Raises CelRuntimeError: the expression has no value, or one that cannot be an attribute.
        """
        return to_attribute(self._evaluate(device, deadline))


@_remembered
def compile_selector(expression: str, features: CelFeatures = _DEFAULT_FEATURES) -> Selector:
    """Compile a device selector as the scheduler does.

    ``features``: the rules that it follows and the features that it may use; by default those of
    the latest minor with everything on, as the scheduler allows.

    Raises:
        CelCompileError: as Kubernetes would reject it.
        ValueError: there are no declarations for the minor.
    """
    environment = device_environment(features)
    problem = "must evaluate to bool or the unknown type, not "
    return Selector(
        _compile_tree(
            expression,
            environment,
            lambda found: "" if environment.can_select(found) else problem + found.declared,
        ),
        environment,
    )


@_remembered
def compile_derived(expression: str, features: CelFeatures = _DEFAULT_FEATURES) -> DerivedAttribute:
    """Compile a derived attribute of a request; arguments and errors as `compile_selector`."""
    if MINORS.index(features.kubernetes) < MINORS.index("1.37"):
        raise ValueError(f"Kubernetes {features.kubernetes} has no derived attributes")
    lists = features.stored or features.list_type_attributes
    environment = device_environment(features)
    node = _compile_tree(
        expression, environment, lambda found: output_type_error(found, lists=lists)
    )
    return DerivedAttribute(node, environment)


class ExpressionProblem(NamedTuple):
    """The reason why an expression is refused.

    Attributes:
        reason: the reason of the cause in the API's Status: FieldValueTooLong, FieldValueInvalid,
            FieldValueForbidden or InternalError.
        message: the text that follows the field's path.
    """

    reason: str
    message: str


def validate_new_expression(
    expression: str, features: CelFeatures = _DEFAULT_FEATURES, *, derived: bool = False
) -> list[ExpressionProblem]:
    """Return why the API server refuses an expression that is written; empty if it does not.

    Args:
        expression: the source of a device selector, or of a derived attribute.
        features: the cluster's minor and gates (``stored`` is ignored); by default everything on.
        derived: whether it is the expression of a derived attribute. (The limit of all derived
            attributes of a claim together is for the caller, who knows them all.)
    """
    if features.stored:
        features = replace(features, stored=False)
    if _size_in_bytes(expression) > MAX_LENGTH:
        message = f"Too long: may not be more than {MAX_LENGTH} bytes"
        return [ExpressionProblem("FieldValueTooLong", message)]
    try:
        compiled = (compile_derived if derived else compile_selector)(expression, features)
    except CelCompileError as error:
        text = str(error)
        if text.startswith(_INSTANTIATION):
            return [ExpressionProblem("InternalError", f"Internal error: {text}")]
        invalid = f"Invalid value: {go_quote(expression)}: {text}"
        return [ExpressionProblem("FieldValueInvalid", invalid)]
    if compiled.max_cost > COST_LIMIT:
        message = "Forbidden: too complex, exceeds cost limit"
        return [ExpressionProblem("FieldValueForbidden", message)]
    return []
