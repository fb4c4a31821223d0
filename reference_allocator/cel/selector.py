"""Device selectors and derived attributes: compiled once per expression, evaluated per device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from reference_allocator.cel.ast import Call, Node
from reference_allocator.cel.codegen.generator import generate
from reference_allocator.cel.codegen.recovery import Recovery, recovery
from reference_allocator.cel.codegen.support import UndecidedError
from reference_allocator.cel.compile import compile_node, instantiate
from reference_allocator.cel.cost.estimate import estimate
from reference_allocator.cel.device import CelDevice
from reference_allocator.cel.environment.declarations import (
    CelFeatures,
    device_environment,
)
from reference_allocator.cel.environment.tables import MINORS
from reference_allocator.cel.errors import CelCompileError, CelRuntimeError
from reference_allocator.cel.interpreter.interpreter import Interpreter, interpret
from reference_allocator.cel.output import output_type_error, to_attribute, to_bool
from reference_allocator.cel.types import CelType

COST_LIMIT: Final = 1_000_000
"""The most that an evaluation may cost (resource.k8s.io/v1 CELSelectorExpressionMaxCost)."""

_DEFAULT_FEATURES: Final = CelFeatures()
_SHORT: Final = 20_000
"""An evaluation that cannot cost more ends within milliseconds: no need to watch a deadline."""


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
        """The value for the device, by the interpreter, and what it cost.

        Raises:
            CelRuntimeError: the expression has no value.
        """
        interpreter = Interpreter(self._cost_limit, deadline)
        value = interpret(interpreter, self._node, {".device": device.as_map})
        return value, interpreter.cost


class Selector(_Compiled):
    """A compiled device selector. Thread-safe.

    Attributes:
        source: the generated Python function, empty when there is none.
    """

    def __init__(self, expression: str, node: Node, cost_limit: int) -> None:
        super().__init__(expression, node, cost_limit)
        self._evaluate, self.source = generate(node, device=True)
        self._recover: Recovery | None = None
        self._terms = isinstance(node, Call) and node.function in ("_&&_", "_||_", "!_")
        if 2 * self.max_cost > cost_limit:  # only the interpreter counts; estimates can be too low
            self._evaluate = None

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
        fast = deadline is None or self.max_cost <= _SHORT
        if fast and self._evaluate is not None:
            try:
                result = self._evaluate(device)
            except KeyError as error:
                result = self._without_attribute(device, error)
            except Exception:  # noqa: BLE001 - any failure means: ask the interpreter
                result = None
            if result is True or result is False:
                return bool(result)
        return self.interpret(device, deadline=deadline)

    def _without_attribute(self, device: CelDevice, error: KeyError) -> bool | None:
        """The value where an attribute may be missing; None if the interpreter has to decide."""
        recover = self._recover
        if recover is None:
            # Compiled when first needed; two threads may both do it, with the same outcome.
            recover = self._recover = recovery(self._node) or _undecided
        found: object = error.args[0] if error.args else None
        if recover is _undecided or self._terms or found.__class__ is not str:
            try:
                found = recover(device)
            except UndecidedError:
                return None
        if found is True or found is False:
            return bool(found)
        raise CelRuntimeError(f"no such key: {found}")

    def interpret(self, device: CelDevice, *, deadline: float | None = None) -> bool:
        """`matches` without generated code: slower, by the same rules."""
        return to_bool(self.evaluate_with_cost(device, deadline=deadline)[0])


def _undecided(_device: CelDevice) -> bool | str:
    raise UndecidedError


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
