"""Device selectors and derived attributes: compiled once per expression, evaluated per device.

New and changed expressions are validated as the API server does, with what the cluster's gates
allow (``validateCELExpression`` in ``pkg/apis/resource/validation/validation.go``); stored ones are
not looked at again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from reference_allocator.api.quoting import go_quote
from reference_allocator.cel.ast import Node
from reference_allocator.cel.compile import MAX_LENGTH, compile_node, instantiate
from reference_allocator.cel.cost.estimate import estimate
from reference_allocator.cel.device import CelDevice
from reference_allocator.cel.environment.declarations import CelFeatures, device_environment
from reference_allocator.cel.environment.tables import MINORS
from reference_allocator.cel.errors import CelCompileError
from reference_allocator.cel.interpreter.interpreter import Interpreter
from reference_allocator.cel.output import output_type_error, to_attribute, to_bool
from reference_allocator.cel.types import CelType

COST_LIMIT: Final = 1_000_000
"""The most that an evaluation may cost (resource.k8s.io/v1 CELSelectorExpressionMaxCost)."""

_DEFAULT_FEATURES: Final = CelFeatures()


class _Compiled:
    """A compiled expression about a device. Thread-safe.

    Attributes:
        max_cost: the most that an evaluation can cost; the API refuses new expressions beyond
            `COST_LIMIT`.
    """

    def __init__(self, node: Node) -> None:
        self.type: CelType = node.type
        self.max_cost = estimate(node)
        self._node = node

    def _evaluate(self, device: CelDevice, deadline: float | None) -> Any:
        return Interpreter(COST_LIMIT, deadline).run(self._node, {".device": device.as_map})


class Selector(_Compiled):
    """A compiled device selector. Thread-safe."""

    def matches(self, device: CelDevice, *, deadline: float | None = None) -> bool:
        """Whether the device is selected.

        Args:
            deadline: when to give up, of `time.monotonic`; None for never, as the cost limit ends
                every evaluation within a second or so.

        Raises:
            CelRuntimeError: the expression has no value, or one that is not a bool.
            CelInterruptedError: (a CelRuntimeError) the deadline has passed.
        """
        return to_bool(self._evaluate(device, deadline))


class DerivedAttribute(_Compiled):
    """A compiled expression whose value is a device attribute. Thread-safe."""

    def attribute(self, device: CelDevice, *, deadline: float | None = None) -> dict[str, Any]:
        """The attribute of a device, as a v1 DeviceAttribute such as ``{"string": "a"}``.

        Args:
            deadline: when to give up, of `time.monotonic`; None for never.

        Raises:
            CelRuntimeError: the expression has no value, or one that cannot be an attribute.
        """
        return to_attribute(self._evaluate(device, deadline))


@lru_cache(maxsize=4096)
def _cached_selector(expression: str, features: CelFeatures) -> Selector | str:
    """The selector, or the text of its compile error."""
    environment = device_environment(features)
    try:
        node = compile_node(expression, environment)
        if not environment.selects(node.type):
            return f"must evaluate to bool or the unknown type, not {node.type.declared}"
        instantiate(node)
    except CelCompileError as error:
        return str(error)
    return Selector(node)


@lru_cache(maxsize=1024)
def _cached_derived(expression: str, features: CelFeatures) -> DerivedAttribute | str:
    """The derived attribute, or the text of its compile error."""
    if MINORS.index(features.kubernetes) < MINORS.index("1.37"):
        raise ValueError(f"Kubernetes {features.kubernetes} has no derived attributes")
    lists = features.stored or features.list_type_attributes
    try:
        node = compile_node(expression, device_environment(features))
        problem = output_type_error(node.type, lists=lists)
        if problem:
            return problem
        instantiate(node)
    except CelCompileError as error:
        return str(error)
    return DerivedAttribute(node)


def compile_selector(expression: str, *, features: CelFeatures = _DEFAULT_FEATURES) -> Selector:
    """A device selector, compiled as the scheduler does.

    Args:
        features: whose rules it follows and what it may use; by default those of the latest minor
            with everything on, as the scheduler allows.

    Raises:
        CelCompileError: as Kubernetes would reject it.
        ValueError: there are no declarations for the minor.
    """
    found = _cached_selector(expression, features)
    if isinstance(found, str):
        raise CelCompileError(found)
    return found


def compile_derived(
    expression: str, *, features: CelFeatures = _DEFAULT_FEATURES
) -> DerivedAttribute:
    """A derived attribute of a request; arguments and errors as `compile_selector`."""
    found = _cached_derived(expression, features)
    if isinstance(found, str):
        raise CelCompileError(found)
    return found


_INTERNAL: Final = "program instantiation failed: "


class ExpressionProblem(NamedTuple):
    """Why an expression is refused.

    Attributes:
        reason: of the cause in the API's Status: FieldValueTooLong, FieldValueInvalid,
            FieldValueForbidden or InternalError.
        message: what follows the field's path.
    """

    reason: str
    message: str


def validate_new_expression(
    expression: str, features: CelFeatures | None = None, *, derived: bool = False
) -> list[ExpressionProblem]:
    """Why the API server refuses an expression that is written; empty if it does not.

    Args:
        expression: of a device selector, or of a derived attribute.
        features: the cluster's minor and gates (``stored`` is ignored); by default everything on.
        derived: it is the expression of a derived attribute. (The limit of all derived attributes
            of a claim together is for the caller, who knows them all.)
    """
    features = replace(features or CelFeatures(), stored=False)
    if len(expression.encode(errors="surrogatepass")) > MAX_LENGTH:
        return [
            ExpressionProblem(
                "FieldValueTooLong", f"Too long: may not be more than {MAX_LENGTH} bytes"
            )
        ]
    try:
        compiled = (compile_derived if derived else compile_selector)(expression, features=features)
    except CelCompileError as error:
        text = str(error)
        if text.startswith(_INTERNAL):
            return [ExpressionProblem("InternalError", f"Internal error: {text}")]
        invalid = f"Invalid value: {go_quote(expression)}: {text}"
        return [ExpressionProblem("FieldValueInvalid", invalid)]
    if compiled.max_cost > COST_LIMIT:
        return [
            ExpressionProblem("FieldValueForbidden", "Forbidden: too complex, exceeds cost limit")
        ]
    return []
