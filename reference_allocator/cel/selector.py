"""Device selectors and derived attributes: compiled once per expression, evaluated per device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from reference_allocator.cel.ast import Node
from reference_allocator.cel.compile import compile_node, instantiate
from reference_allocator.cel.cost.estimate import estimate
from reference_allocator.cel.device import CelDevice
from reference_allocator.cel.environment.declarations import (
    CelFeatures,
    device_environment,
)
from reference_allocator.cel.environment.tables import MINORS
from reference_allocator.cel.errors import CelCompileError
from reference_allocator.cel.interpreter.interpreter import Interpreter, interpret
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

    def __init__(self, expression: str, node: Node, cost_limit: int) -> None:
        self.expression = expression
        self.type: CelType = node.type
        self.max_cost = estimate(node)
        self._node = node
        self._cost_limit = cost_limit

    def evaluate_with_cost(
        self, device: CelDevice, *, deadline: float | None = None
    ) -> tuple[Any, int]:
        """The value for the device and what the evaluation cost.

        Raises:
            CelRuntimeError: the expression has no value.
        """
        interpreter = Interpreter(self._cost_limit, deadline)
        value = interpret(interpreter, self._node, {".device": device.as_map})
        return value, interpreter.cost


class Selector(_Compiled):
    """A compiled device selector. Thread-safe."""

    def matches(self, device: CelDevice, *, deadline: float | None = None) -> bool:
        """Whether the device is selected.

        Args:
            device: the device.
            deadline: when to give up, of `time.monotonic`; None for never, as the cost limit ends
                every evaluation within a second or so.

        Raises:
            CelRuntimeError: the expression has no value, or one that is not a bool.
            CelInterruptedError: (a CelRuntimeError) the deadline has passed.
        """
        return to_bool(self.evaluate_with_cost(device, deadline=deadline)[0])


class DerivedAttribute(_Compiled):
    """A compiled expression whose value is a device attribute. Thread-safe."""

    def attribute(self, device: CelDevice, *, deadline: float | None = None) -> dict[str, Any]:
        """The attribute of a device, as a v1 DeviceAttribute such as ``{"string": "a"}``.

        Args:
            device: the device.
            deadline: when to give up, of `time.monotonic`; None for never.

        Raises:
            CelRuntimeError: the expression has no value, or one that cannot be an attribute.
        """
        return to_attribute(self.evaluate_with_cost(device, deadline=deadline)[0])


@lru_cache(maxsize=4096)
def _cached_selector(expression: str, features: CelFeatures, cost_limit: int) -> Selector | str:
    """The selector, or the text of its compile error."""
    environment = device_environment(features)
    try:
        node = compile_node(expression, environment)
        if not environment.selects(node.type):
            return f"must evaluate to bool or the unknown type, not {node.type.declared}"
        instantiate(node)
    except CelCompileError as error:
        return str(error)
    return Selector(expression, node, cost_limit)


@lru_cache(maxsize=1024)
def _cached_derived(
    expression: str, features: CelFeatures, cost_limit: int
) -> DerivedAttribute | str:
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
        features: whose rules it follows and what it may use; by default those of the latest minor
            with everything on, as the scheduler allows.
        cost_limit: where an evaluation is stopped with an error.

    Raises:
        CelCompileError: as Kubernetes would reject it.
        ValueError: there are no declarations for the minor.
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
