"""Where constraints find attributes: published by the driver, or derived by the request.

A derived attribute is a CEL expression of the request; only constraints see it, and it hides a
published attribute of the same name (KEP-6080). Source: lookupAttribute in
allocator_experimental.go.
"""

from __future__ import annotations

from typing import Final

from reference_allocator.api import Attribute
from reference_allocator.cel import CelCompileError, CelRuntimeError, compile_derived
from reference_allocator.cluster.pools import PoolDevice
from reference_allocator.environment import derived_environment
from reference_allocator.errors import AllocationError
from reference_allocator.matching.resolved import Request
from reference_allocator.matching.selectors import Selectors
from reference_allocator.rules.constraints import AttributeConstraint, Key, lookup

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
