"""Whether a device suits a request, apart from what is allocated already.

The answer is the same for all claims with equal requests and for all nodes, so it stays with the
device. Errors are not remembered as answers: they are raised where upstream reaches them.
"""

from __future__ import annotations

import time
from typing import Final

from reference_allocator.cluster.node import NodeView
from reference_allocator.cluster.pools import PoolDevice
from reference_allocator.errors import AllocationError, SearchTimeoutError
from reference_allocator.features import Features
from reference_allocator.matching.resolved import Request
from reference_allocator.matching.selectors import Selectors
from reference_allocator.rules.capacity import CapacityError, Consumption, fits, resolve
from reference_allocator.rules.taints import blocking_taint

UNSUITABLE: Final = 0
PLAIN: Final = 1
"""Suits, and nothing but its being in use and constraints can be in the way."""
CONDITIONAL: Final = 2
"""Suits as far as capacity, counters and compatibility groups are left for it."""

NO_CONSUMPTION: Final = Consumption({})
_MAX_KEPT: Final = 256


class Matcher:
    """Says which devices suit requests for one node."""

    def __init__(
        self, features: Features, selectors: Selectors, view: NodeView, deadline: float | None
    ) -> None:
        self._features = features
        self._selectors = selectors
        self._view = view
        self._deadline = deadline
        self.attributes = selectors.attributes

    def suitability(self, request: Request, entry: PoolDevice) -> int:
        """UNSUITABLE, PLAIN or CONDITIONAL, with upstream's errors in upstream's order.

        Raises:
            AllocationError: a selector fails, or the capacity cannot be computed.
            SearchTimeoutError: the deadline passed.
        """
        known = entry.suitability.get(request.kind)
        if known is not None:
            return known
        found = self._decide(request, entry)
        if not entry.of_node:
            if len(entry.suitability) >= _MAX_KEPT:
                entry.suitability.clear()
            entry.suitability[request.kind] = found
        return found

    def _decide(self, request: Request, entry: PoolDevice) -> int:
        if not self.is_selected(request, entry):
            return UNSUITABLE
        consumption = self.consumption(request, entry)
        if consumption is None or not self.supported(entry) or self.tainted(request, entry):
            return UNSUITABLE
        if entry.shareable or entry.device.consumes_counters:
            return CONDITIONAL
        if not fits(consumption, entry.device, {}, {}):
            return CONDITIONAL
        return PLAIN

    def is_selected(self, request: Request, entry: PoolDevice) -> bool:
        """The checks of upstream's isSelectable, in its order: class, request, node.

        Raises:
            AllocationError: a selector does not compile or fails on the device.
            SearchTimeoutError: the deadline passed.
        """
        if entry.withheld:
            return False
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise SearchTimeoutError
        for selectors in (request.class_selectors, request.selectors):
            if not selectors:
                continue
            failure = self._selectors.first_failure(selectors, entry)
            if failure is None:
                continue
            if failure.error is None:
                return False
            owner = (
                f"class {request.device_class.name}"
                if selectors is request.class_selectors
                else f"claim {request.claim.ref}"
            )
            on_device = "" if failure.at_compile_time else f" on device {entry.id}"
            raise AllocationError(f"{owner}: selector #{failure.index}{on_device}: {failure.error}")
        return not entry.of_node or self._view.includes(entry)

    def has_capacity(self, request: Request, entry: PoolDevice) -> bool:
        """Whether the device's capacity is enough for the request beside allocated claims.

        Raises:
            AllocationError: the request cannot be computed for this device.
        """
        consumption = self.consumption(request, entry)
        return consumption is not None and fits(consumption, entry.device, entry.use.capacity, {})

    def consumption(
        self, request: Request, entry: PoolDevice, named: str = ""
    ) -> Consumption | None:
        """What the request takes of the device; None where the device does not suit it.

        Args:
            named: how an error names the device, by default by driver, pool and name.

        Raises:
            AllocationError: it cannot be computed.
        """
        if not self._features.consumable_capacity:
            return NO_CONSUMPTION
        known = entry.facts.consumptions
        if request.wish in known:
            return known[request.wish]
        try:
            found = resolve(request.spec.capacity, entry.device, self._features)
        except CapacityError as error:
            raise AllocationError(
                f"{request.context}: checking capacity for device {named or entry.id}: {error}"
            ) from None
        if len(known) >= _MAX_KEPT:
            known.clear()
        known[request.wish] = found
        return found

    def could_fit(self, request: Request, entry: PoolDevice) -> bool:
        """Whether the device has enough capacity if nobody else uses it.

        Raises:
            AllocationError: the request cannot be computed for this device.
        """
        consumption = self.consumption(request, entry, entry.device.name)
        return consumption is not None and fits(consumption, entry.device, {}, {})

    def supported(self, entry: PoolDevice) -> bool:
        if entry.of_node and not self._view.operates(entry):
            return False
        return self._features.partitionable_devices or not entry.device.consumes_counters

    def tainted(self, request: Request, entry: PoolDevice) -> bool:
        taints = entry.device.taints
        return (
            bool(taints)
            and self._features.device_taints
            and blocking_taint(taints, request.spec.tolerations) is not None
        )
