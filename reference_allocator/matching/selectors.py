"""CEL selectors and derived attributes, each evaluated at most once per device.

What an expression says about a device depends on nothing but the two, so the memo stays with the
device and serves all nodes and all claims. An error is remembered as an outcome: only the search
knows whether it is ever reached. A derived attribute is seen by constraints alone, and hides a
published one of the same name (KEP-6080; lookupAttribute in allocator_experimental.go).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

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
from reference_allocator.matching.resolved import Request
from reference_allocator.rules.constraints import AttributeConstraint, Key, lookup

_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)
_UNASKED: Final = object()
_MAX_EXPRESSIONS: Final = 4096
_MAX_OUTCOMES: Final = 256
"""Of how many selectors a device keeps the outcome; claims can bring any number of them."""


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """Why a list of selectors does not select a device.

    Attributes:
        index: which selector of the list.
        expression: its source.
        error: the text of an error ("CEL compile error: ..." or "CEL runtime error: ..."), or None
            where the selector is simply false.
        at_compile_time: the error is one of the expression alone.
    """

    index: int
    expression: str
    error: str | None = None
    at_compile_time: bool = False


class Selectors:
    """Selectors, evaluated. Not thread-safe.

    Attributes:
        environment: what the selectors may use.
        attributes: what constraints compare.
    """

    def __init__(self, environment: CelFeatures) -> None:
        self.environment = environment
        self._of_driver: dict[tuple[str, str], bool | str | None] = {}
        self.attributes = AttributeSource(self)

    def first_failure(self, selectors: Sequence[str], entry: PoolDevice) -> SelectorFailure | None:
        """The first selector that is not true for the device, or None where all are.

        Later selectors are not evaluated, as upstream stops at the first false one.
        """
        for index, expression in enumerate(selectors):
            outcome = entry.facts.outcomes.get(expression)
            if outcome is True:
                continue
            if outcome is None:
                try:
                    outcome = self._evaluate(expression, entry)
                except CelCompileError as error:
                    text = f"CEL compile error: {error}"
                    return SelectorFailure(index, expression, text, at_compile_time=True)
                if outcome is True:
                    continue
            if outcome is False:
                return SelectorFailure(index, expression)
            return SelectorFailure(index, expression, f"CEL runtime error: {outcome}")
        return None

    def _evaluate(self, expression: str, entry: PoolDevice) -> bool | str:
        outcome = self._of_any_device(expression, entry.id.driver) if entry.convertible else None
        if outcome is None:
            program = compile_selector(expression, features=self.environment)
            outcome = _outcome(program, lambda: self.device(entry))
        known = entry.facts.outcomes
        if len(known) >= _MAX_OUTCOMES:
            known.clear()
        known[expression] = outcome
        return outcome

    def _of_any_device(self, expression: str, driver: str) -> bool | str | None:
        """What it says of each device of a driver; None where it asks for more than the driver."""
        key = (expression, driver)
        outcome = self._of_driver.get(key, _UNASKED)
        if outcome is _UNASKED:
            program = compile_selector(expression, features=self.environment)
            try:
                outcome = _outcome(program, lambda: CelDevice(_DriverAlone(driver=driver)))
            except _MoreAskedError:
                outcome = None
            if len(self._of_driver) >= _MAX_EXPRESSIONS:
                self._of_driver.clear()
            self._of_driver[key] = outcome
        return cast("bool | str | None", outcome)

    def device(self, entry: PoolDevice) -> CelDevice:
        """The device as CEL sees it, converted once.

        Raises:
            CelRuntimeError: an attribute cannot be converted; every expression fails then.
        """
        device = entry.facts.cel
        if device is None:
            device = convert_device(self.environment, entry.id.driver, entry.device.raw)
            entry.facts.cel = device
        return device


def _outcome(program: Selector, device: Callable[[], CelDevice]) -> bool | str:
    """What a selector says of a device, or the text of its error."""
    try:
        return program.matches(device())
    except CelRuntimeError as error:
        text = str(error)
        return text + _HINT if "no such key:" in text else text


class _MoreAskedError(Exception):
    """An expression asked for more than a device's driver."""


class _DriverAlone(dict[str, Any]):
    """The fields of a device of which only the driver may be asked for.

    The selector of nearly every class asks for no more, and the devices of a driver are alike then;
    so do many requests for devices of other drivers.
    """

    def _more(self, *_: object) -> Any:
        raise _MoreAskedError

    __missing__ = __contains__ = __eq__ = __ne__ = __iter__ = __len__ = _more
    get = items = keys = values = _more


_MAX_KEPT: Final = 64


class AttributeSource:
    """Attributes of devices as the constraints of a claim see them. Not thread-safe."""

    def __init__(self, selectors: Selectors) -> None:
        self._selectors = selectors
        self._environment = derived_environment(selectors.environment)

    def attribute(self, request: Request, entry: PoolDevice, name: str) -> Attribute | None:
        """The attribute, or None where the device has none of that name.

        Raises:
            AllocationError: a derived attribute does not compile or cannot be computed.
        """
        expression = request.derived.get(name)
        if expression is None:
            return lookup(entry.device, entry.id.driver, name)
        known = entry.facts.derived
        found = known.get(expression)
        if found is None:
            found = self._compute(entry, name, expression)
            if len(known) >= _MAX_KEPT:
                known.clear()
            known[expression] = found
        return found

    def compared(
        self, request: Request, entry: PoolDevice, constraint: AttributeConstraint
    ) -> frozenset[Key] | None:
        """The attribute as a constraint compares it; None where the device cannot be used.

        Raises:
            AllocationError: see `attribute`.
        """
        name = constraint.attribute
        if name in request.derived:
            return constraint.compared(self.attribute(request, entry, name))
        known = entry.facts.compared
        if name in known:
            return known[name]
        found = constraint.compared(lookup(entry.device, entry.id.driver, name))
        if len(known) >= _MAX_KEPT:
            known.clear()
        known[name] = found
        return found

    def _compute(self, entry: PoolDevice, name: str, expression: str) -> Attribute:
        try:
            program = compile_derived(expression, features=self._environment)
        except CelCompileError as error:
            raise AllocationError(f"compile derived attribute {name} failed: {error}") from None
        try:
            value = program.attribute(self._selectors.device(entry))
        except CelRuntimeError as error:
            raise AllocationError(
                f"evaluate derived attribute {name} on device {entry.id} failed: {error}"
            ) from None
        return Attribute.from_dict(value)
