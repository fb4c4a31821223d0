"""CEL selectors and derived attributes, each evaluated at most once per device.

What an expression says about a device depends on nothing but the two, so the memo stays with the
device and serves all nodes and all claims. An error is remembered as an outcome: only the search
knows whether it is ever reached. A derived attribute is seen by constraints alone, and hides a
published one of the same name (KEP-6080; lookupAttribute in allocator_experimental.go).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from reference_allocator.api import Attribute
from reference_allocator.cel import (
    CelCompileError,
    CelDevice,
    CelFeatures,
    CelRuntimeError,
    Selector,
    compile_derived,
    compile_selector,
)
from reference_allocator.cluster.pools import PoolDevice
from reference_allocator.environment import convert_device, derived_environment
from reference_allocator.errors import AllocationError
from reference_allocator.gates import MinorRules
from reference_allocator.matching.resolved import Request
from reference_allocator.rules.constraints import AttributeConstraint, Key, find_attribute

_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)
_Source = TypeVar("_Source", PoolDevice, str)
_MAX_EXPRESSIONS: Final = 4096
_MAX_OUTCOMES: Final = 256
"""The most selectors whose outcomes a device keeps; claims can bring any number of them."""


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """The reason why a list of selectors does not select a device.

    Attributes:
        index: which selector of the list.
        expression: its source.
        error: the text of an error ("CEL compile error: ..." or "CEL runtime error: ..."), or None
            where the selector is simply false.
        at_compile_time: whether the error is one of the expression alone.
    """

    index: int
    expression: str
    error: str | None = None
    at_compile_time: bool = False


class Selectors:
    """The evaluation of selectors on devices. Not thread-safe.

    Attributes:
        environment: what the selectors may use.
        rules: those of the environment's minor.
        attributes: what constraints compare.
    """

    def __init__(self, environment: CelFeatures) -> None:
        self.environment = environment
        self.rules = MinorRules.for_version(environment.kubernetes)
        self._of_driver: dict[tuple[str, str], bool | str | None] = {}
        self.attributes = AttributeSource(self)

    def first_failure(self, selectors: Sequence[str], entry: PoolDevice) -> SelectorFailure | None:
        """Return the first selector that is not true for the device, or None where all are.

        Later selectors are not evaluated, as upstream stops at the first false one.
        """
        for index, expression in enumerate(selectors):
            try:
                outcome = self._find_outcome(expression, entry)
            except CelCompileError as error:
                text = f"CEL compile error: {error}"
                return SelectorFailure(index, expression, text, at_compile_time=True)
            if outcome is True:
                continue
            if outcome is False:
                return SelectorFailure(index, expression)
            return SelectorFailure(index, expression, f"CEL runtime error: {outcome}")
        return None

    def _find_outcome(self, expression: str, entry: PoolDevice) -> bool | str:
        if entry.convertible:
            driver = entry.slice.driver
            try:
                outcome = self._of_driver[expression, driver]
            except KeyError:
                outcome = self._ask_any_device(expression, driver)
            if outcome is not None:
                return outcome
        outcomes = entry.get_facts().outcomes
        outcome = outcomes.get(expression)
        if outcome is None:
            program = compile_selector(expression, features=self.environment)
            outcome = _evaluate_selector(program, self.convert_device, entry)
            if len(outcomes) >= _MAX_OUTCOMES:
                outcomes.clear()
            outcomes[expression] = outcome
        return outcome

    def _ask_any_device(self, expression: str, driver: str) -> bool | str | None:
        """Return the outcome for any device of a driver; None where it depends on more of them."""
        program = compile_selector(expression, features=self.environment)
        outcome: bool | str | None = None
        with suppress(_MoreAskedError):
            outcome = _evaluate_selector(program, _only_driver, driver)
        if len(self._of_driver) >= _MAX_EXPRESSIONS:
            self._of_driver.clear()
        self._of_driver[expression, driver] = outcome
        return outcome

    def convert_device(self, entry: PoolDevice) -> CelDevice:
        """Return the device as CEL sees it, converted once.

        Raises:
            CelRuntimeError: an attribute cannot be converted; every expression fails then.
        """
        device = entry.get_facts().cel
        if device is None:
            device = convert_device(self.environment, entry.id.driver, entry.device.raw)
            entry.get_facts().cel = device
        return device


def _only_driver(driver: str) -> CelDevice:
    return CelDevice(_OnlyDriver(driver=driver))


def _evaluate_selector(
    program: Selector, convert: Callable[[_Source], CelDevice], source: _Source
) -> bool | str:
    """Return whether a selector selects a device, or the text of its error."""
    try:
        return program.matches(convert(source))
    except CelRuntimeError as error:
        text = str(error)
        return text + _HINT if "no such key:" in text else text


class _MoreAskedError(Exception):
    """The signal that an expression needs more than a device's driver."""


class _OnlyDriver(dict[str, Any]):
    """The fields of a device of which only the driver may be asked for.

    The selector of nearly every class asks for no more, and the devices of a driver are alike then;
    so do many requests for devices of other drivers.
    """

    def _refuse_more(self, *_: object) -> Any:
        raise _MoreAskedError

    __missing__ = __contains__ = __eq__ = __ne__ = __iter__ = __len__ = _refuse_more
    get = items = keys = values = _refuse_more


_MAX_ATTRIBUTES: Final = 64


class AttributeSource:
    """The attributes of devices as the constraints of a claim see them. Not thread-safe."""

    def __init__(self, selectors: Selectors) -> None:
        self._selectors = selectors
        self._environment = derived_environment(selectors.environment)

    def get_attribute(self, request: Request, entry: PoolDevice, name: str) -> Attribute | None:
        """Return the attribute, or None where the device has none of that name.

        Raises:
            AllocationError: a derived attribute does not compile or cannot be computed.
        """
        expression = request.derived.get(name)
        if expression is None:
            return find_attribute(entry.device, entry.id.driver, name)
        computed = entry.get_facts().derived
        attribute = computed.get(expression)
        if attribute is None:
            attribute = self._compute(entry, name, expression)
            if len(computed) >= _MAX_ATTRIBUTES:
                computed.clear()
            computed[expression] = attribute
        return attribute

    def values_to_admit(
        self, request: Request, entry: PoolDevice, constraint: AttributeConstraint
    ) -> frozenset[Key] | None:
        """Return the values that a constraint compares; None where the device cannot be used.

        Raises:
            AllocationError: see `get_attribute`.
        """
        name = constraint.attribute
        if name in request.derived:
            attribute = self.get_attribute(request, entry, name)
            return constraint.values_to_admit(attribute, entry.id, derived=True)
        memo = (entry.facts or entry.get_facts()).values_to_admit
        values = memo.get(name)
        if values is not None:
            return values
        attribute = find_attribute(entry.device, entry.id.driver, name)
        values = constraint.values_to_admit(attribute, entry.id)
        if values is not None:
            if len(memo) >= _MAX_ATTRIBUTES:
                memo.clear()
            memo[name] = values
        return values

    def _compute(self, entry: PoolDevice, name: str, expression: str) -> Attribute:
        try:
            program = compile_derived(expression, features=self._environment)
        except CelCompileError as error:
            raise AllocationError(f"compile derived attribute {name} failed: {error}") from None
        try:
            value = program.compute_attribute(self._selectors.convert_device(entry))
        except CelRuntimeError as error:
            raise AllocationError(
                f"evaluate derived attribute {name} on device {entry.id} failed: {error}"
            ) from None
        return Attribute.from_dict(value)
