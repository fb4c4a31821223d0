"""The suitability of a device for a request, apart from what is allocated already.

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
from reference_allocator.rules.capacity import (
    CapacityError,
    Consumption,
    capacity_suffices,
    resolve_consumption,
)
from reference_allocator.rules.taints import blocking_taint

UNSUITABLE: Final = 0
PLAIN: Final = 1
"""The device suits; only that it is in use, or constraints, can be in the way."""
CONDITIONAL: Final = 2
"""The device suits as far as capacity, counters and compatibility groups are left for it."""

NO_CONSUMPTION: Final = Consumption({}, {})
_MAX_REMEMBERED: Final = 256


class Matcher:
    """A judge of devices for requests on one node after the other.

    Attributes:
        view: the node that is looked at; set before anything is asked.
        features: what may be used.
        attributes: what constraints compare.
        rules: those of the minor.
        repeats_devices: whether a request can get several shares of one device.
        deadline: the value of `time.monotonic()` at which a look gives up, if there is one.
    """

    view: NodeView

    def __init__(self, features: Features, selectors: Selectors) -> None:
        self.features = features
        self._selectors = selectors
        self.deadline: float | None = None
        self.attributes = selectors.attributes
        self.rules = selectors.rules
        self.repeats_devices = features.consumable_capacity and self.rules.repeats_shared_devices

    def rate_device(self, request: Request, entry: PoolDevice) -> int:
        """Return UNSUITABLE, PLAIN or CONDITIONAL, with upstream's errors in upstream's order.

        Raises:
            AllocationError: a selector fails, or the capacity cannot be computed.
            SearchTimeoutError: the deadline passed.
        """
        remembered = entry.suitability.get(request.kind)
        if remembered is not None:
            return remembered
        suitability = self._rate(request, entry)
        if not entry.of_node:
            if len(entry.suitability) >= _MAX_REMEMBERED:
                entry.suitability.clear()
            entry.suitability[request.kind] = suitability
        return suitability

    def _rate(self, request: Request, entry: PoolDevice) -> int:
        if not self.is_selected(request, entry):
            return UNSUITABLE
        if entry.plain and request.spec.capacity is None:
            return PLAIN
        consumption = self.compute_consumption(request, entry)
        if consumption is None or not self.is_supported(entry) or self.is_tainted(request, entry):
            return UNSUITABLE
        draws = entry.shareable or entry.device.consumes_counters
        return PLAIN if consumption.fits_alone and not draws else CONDITIONAL

    def is_selected(self, request: Request, entry: PoolDevice) -> bool:
        """Return whether the device is selected, by the checks of upstream's isSelectable.

        The order is upstream's, because the first error is the answer: class, request, node.

        Raises:
            AllocationError: a selector does not compile or fails on the device.
            SearchTimeoutError: the deadline passed.
        """
        if entry.withheld:
            return False
        if self.deadline is not None and time.monotonic() >= self.deadline:
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
        return not entry.of_node or self.view.includes_device(entry)

    def has_capacity(self, request: Request, entry: PoolDevice) -> bool:
        """Return whether the device's capacity is enough for the request beside allocated claims.

        Raises:
            AllocationError: the request cannot be computed for this device.
        """
        consumption = self.compute_consumption(request, entry)
        return consumption is not None and capacity_suffices(consumption, entry.use.capacity, {})

    def compute_consumption(
        self, request: Request, entry: PoolDevice, device_name: str = ""
    ) -> Consumption | None:
        """Return what the request takes of the device; None where the device does not suit it.

        Args:
            device_name: how an error names the device, by default by driver, pool and name.

        Raises:
            AllocationError: the consumption cannot be computed.
        """
        if not self.features.consumable_capacity:
            return NO_CONSUMPTION
        consumptions = entry.get_facts().consumptions
        if request.capacity_kind in consumptions:
            return consumptions[request.capacity_kind]
        try:
            consumption = resolve_consumption(
                request.spec.capacity, entry.device, self.features, self.rules, entry.id.driver
            )
        except CapacityError as error:
            device = device_name or entry.id
            raise AllocationError(
                f"{request.context}: checking capacity for device {device}: {error}"
            ) from None
        if len(consumptions) >= _MAX_REMEMBERED:
            consumptions.clear()
        consumptions[request.capacity_kind] = consumption
        return consumption

    def could_fit(self, request: Request, entry: PoolDevice) -> bool:
        """Return whether the device has enough capacity if nobody else uses it.

        Raises:
            AllocationError: the request cannot be computed for this device.
        """
        consumption = self.compute_consumption(request, entry, entry.device.name)
        return consumption is not None and consumption.fits_alone

    def is_supported(self, entry: PoolDevice) -> bool:
        """Return whether the node and the features can handle the device."""
        if entry.of_node and not self.view.can_operate(entry):
            return False
        return self.features.partitionable_devices or not entry.device.consumes_counters

    def is_tainted(self, request: Request, entry: PoolDevice) -> bool:
        """Return whether the device has a blocking taint that the request does not tolerate."""
        taints = entry.device.taints
        return (
            bool(taints)
            and self.features.device_taints
            and blocking_taint(taints, request.spec.tolerations) is not None
        )
