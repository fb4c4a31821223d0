"""Consumable capacity: how much of a device one request takes (KEP-5075).

For each capacity of the device the request is brought into the form that the device's policy wants
(`resolve_consumption`), and then has to fit beside what others take (`capacity_suffices`). The
first depends only on the request and the device, the second on the moment. Source:
consumable_capacity.go of the experimental allocator. With ConsumableCapacity on, the check applies
to devices that cannot be shared, too.

Amounts are whole numbers of 1e-9, which is exact: a resource.Quantity has no digits beyond. Ranges
below zero, which the API server refuses, are not computed with Go's overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from reference_allocator import api
from reference_allocator.api.quantity import Format, Quantity
from reference_allocator.api.quoting import go_quote
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules

NANO: Final = 10**9
"""Nano units in one unit."""

_INT64_MAX = 2**63 - 1
_MILLI = NANO // 1000
_NOT_REPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


class CapacityError(Exception):
    """The capacity that a request asks for is wrong for every device: fatal. The text names it."""


class Consumption:
    """The capacity that one request takes of one device.

    Attributes:
        amounts: capacity name -> amount in units of 1e-9.
        totals: capacity name -> what the whole device has of it, in the same units.
        fits_alone: whether the device has it if nobody else uses it.
    """

    def __init__(
        self,
        quantities: Mapping[str, Quantity],
        published: Mapping[str, api.DeviceCapacity],
        spellings: Mapping[str, str] | None = None,
    ) -> None:
        self._quantities = quantities
        self._spellings = spellings
        self.amounts = {name: amount.nanos for name, amount in quantities.items()}
        self.totals = {name: published[name].value.nanos for name in quantities}
        self.fits_alone = capacity_suffices(self, {}, {})

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Return the amounts as texts of quantities, as results of the request have them."""
        if self._spellings is None:
            return {name: str(amount) for name, amount in self._quantities.items()}
        return {
            self._spellings[name]: str(amount.as_since_1_38())
            for name, amount in self._quantities.items()
        }


def complete_name(name: str, driver: str) -> str:
    """Return the name of a capacity with its domain, which is the driver's where it has none."""
    return name if "/" in name else f"{driver}/{name}"


def published_capacities(
    device: api.Device, driver: str
) -> tuple[dict[str, api.DeviceCapacity], dict[str, str]]:
    """Return a device's capacities by complete name, and the driver's own spelling of each.

    Where a driver publishes both spellings of a name, the complete one counts
    (Convert_v1_To_api_DeviceCapacities).
    """
    capacities: dict[str, api.DeviceCapacity] = {}
    spellings: dict[str, str] = {}
    for name, capacity in device.capacity.items():
        complete = complete_name(name, driver)
        if complete not in capacities or name == complete:
            capacities[complete] = capacity.as_since_1_38()
            spellings[complete] = name
    return capacities, spellings


def resolve_requests(
    requested: Mapping[str, Quantity], published: Mapping[str, object], driver: str
) -> dict[str, Quantity] | None:
    """Return what is requested by complete names; None where the device lacks one of them.

    Whether a request that both lacks a capacity and names another one twice is an error depends on
    the order of Go's map (resolveCapacityRequests in 1.38.0-beta.0); here it is none.

    Raises:
        CapacityError: a capacity is requested by both its spellings.
    """
    resolved: dict[str, Quantity] = {}
    if not {complete_name(name, driver) for name in requested} <= published.keys():
        return None
    for name, amount in requested.items():
        complete = complete_name(name, driver)
        if complete in resolved:
            bare = complete.partition("/")[2]
            other = bare if name == complete else complete
            raise CapacityError(
                f"capacity {go_quote(bare)} requested both as {go_quote(name)} and as "
                f"{go_quote(other)}"
            )
        resolved[complete] = amount.as_since_1_38()
    return resolved


def resolve_consumption(
    requirements: api.CapacityRequests | None,
    device: api.Device,
    features: Features,
    rules: MinorRules,
    driver: str,
) -> Consumption | None:
    """Return what the request takes of the device, or None where the device does not suit it.

    It does not suit where it lacks a requested capacity or its policy does not allow the amount.

    Args:
        driver: that of the device, the domain of names without one.

    Raises:
        CapacityError: the amount cannot be computed or is negative.
    """
    requested = {} if requirements is None else requirements.requests
    published, spellings = device.capacity, None
    if rules.reads_inner_types:
        published, spellings = published_capacities(device, driver)
        resolved = resolve_requests(requested, published, driver)
        if resolved is None:
            return None
        requested = resolved
    elif requested and not published.keys() >= requested.keys():
        return None
    quantities: dict[str, Quantity] = {}
    with_policy: list[tuple[str, api.RequestPolicy]] = []
    # All amounts before any policy, so that the answer does not depend on the order of names.
    for name, capacity in published.items():
        policy, amount = capacity.request_policy, capacity.value
        wanted = requested.get(name)
        if policy is not None and not (
            rules.allows_any_default and wanted is None and policy.default is not None
        ):
            with_policy.append((name, policy))
        if policy is not None or wanted is not None:
            try:
                if rules.refuses_negative_amounts and wanted is not None and wanted.nanos < 0:
                    raise CapacityError(f"capacity value is negative: request {wanted}")
                amount = _amount_for(wanted, capacity, features, rules)
            except CapacityError as error:
                raise CapacityError(f'capacity "{name}": {error}') from None
        if amount.nanos < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
        quantities[name] = amount
    for name, policy in with_policy:
        if _violates_policy(quantities[name], policy, features):
            return None
    return Consumption(quantities, published, spellings)


def is_taken_whole(device: api.Device) -> bool:
    """Return whether a request that names no capacity takes all of a device, and gets it.

    That is so for most devices: no policy has a default, nothing is negative.
    """
    for capacity in device.capacity.values():
        if capacity.request_policy is not None or capacity.value.nanos < 0:
            return False
    return True


def capacity_suffices(
    consumption: Consumption, in_use: Mapping[str, int], allocating: Mapping[str, int]
) -> bool:
    """Return whether the consumption fits into what is left of its device.

    Args:
        in_use: capacity name -> amount that allocated claims have.
        allocating: capacity name -> amount that the search has given out already.
    """
    totals = consumption.totals
    for name, amount in consumption.amounts.items():
        used = in_use.get(name, 0) + allocating.get(name, 0)
        if used + amount > totals[name]:
            return False
    return True


def _amount_for(
    requested: Quantity | None,
    capacity: api.DeviceCapacity,
    features: Features,
    rules: MinorRules,
) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        if policy is not None and policy.default is not None:
            return policy.default
        return capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _round_to_range(
            requested, policy.valid_range.min, policy.valid_range, features, rules
        )
    for value in policy.valid_values or ():
        if requested.nanos <= value.nanos:
            return value
    return requested


def _round_to_range(
    requested: Quantity,
    minimum: Quantity,
    valid: api.ValidRange,
    features: Features,
    rules: MinorRules,
) -> Quantity:
    """Return the next value of the range: its minimum plus a multiple of its step."""
    if requested.nanos < minimum.nanos:
        return minimum
    if valid.step is None:
        return requested
    written: Format = "BinarySI" if rules.rounds_to_binary else valid.step.format
    if _uses_milli(valid, features):
        if not _is_milli(requested):
            raise CapacityError(
                f"{_NOT_REPRESENTABLE}: request {requested} is not a representable milli value"
            )
        step = valid.step.nanos // _MILLI
        rounded = _next_step(requested.nanos // _MILLI, minimum.nanos // _MILLI, step)
        if rounded is None:
            raise CapacityError(
                f"{_NOT_REPRESENTABLE}: rounding request {requested} up to the next step passes "
                "the milli-value range"
            )
        return (
            Quantity(rounded, -3, valid.step.format)
            if rounded % 1000
            else _whole_units(rounded // 1000, written)
        )
    if requested.nanos > _INT64_MAX * NANO:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {requested} exceeds MaxInt64")
    low, step = _count_units(minimum), _count_units(valid.step)
    if step == 0:  # Upstream divides by it and panics; the API server lets in none below 1.
        raise CapacityError(f"{_NOT_REPRESENTABLE}: step {valid.step} is not positive")
    rounded = _next_step(_count_units(requested), low, step)
    if rounded is None:
        raise CapacityError(
            f"{_NOT_REPRESENTABLE}: rounding request {requested} up to the next step passes "
            "MaxInt64"
        )
    return _whole_units(rounded, written)


def _whole_units(units: int, written: Format) -> Quantity:
    """Return a quantity of whole units (resource.NewQuantity)."""
    return Quantity(units, 0, written)


def _next_step(requested: int, low: int, step: int) -> int | None:
    """Return the next of `low`, `low + step`, ...; None beyond what fits into 64 bits."""
    rounded = low - (low - requested) // step * step
    return rounded if rounded <= _INT64_MAX else None


def _violates_policy(amount: Quantity, policy: api.RequestPolicy, features: Features) -> bool:
    if policy.default is not None and _same_representation(amount, policy.default):
        return False
    if policy.valid_range is not None:
        return _is_outside_range(amount, policy.valid_range, features)
    if policy.valid_values:
        return all(amount.nanos != value.nanos for value in policy.valid_values)
    return False


def _same_representation(left: Quantity, right: Quantity) -> bool:
    """Return whether Go's `==` finds the two structs equal.

    Equal amounts are not enough: form, scale, format and the text kept from parsing have to be the
    same (1Ki is not 1024 here), and two amounts kept as decimals never are.
    """
    if left.decimal or right.decimal:
        return False
    mine, other = ((q.value, q.scale, q.format, q.text) for q in (left, right))
    return mine == other


def _is_outside_range(amount: Quantity, valid: api.ValidRange, features: Features) -> bool:
    if valid.max is not None and amount.nanos > valid.max.nanos:
        return True
    if valid.step is None:
        return False
    if _uses_milli(valid, features):
        low = 0 if valid.min is None else valid.min.nanos
        return not _is_milli(amount) or (amount.nanos - low) % valid.step.nanos != 0
    step, low = _count_units(valid.step), 0 if valid.min is None else _count_units(valid.min)
    return step == 0 or (_count_units(amount) - low) % step != 0


def _uses_milli(valid: api.ValidRange, features: Features) -> bool:
    """Return whether the range is counted in thousandths (DRAFractionalCapacityRange)."""
    if not features.fractional_capacity_range:
        return False
    bounds = (valid.min, valid.max, valid.step)
    if not all(_is_milli(bound) for bound in bounds if bound is not None):
        return False
    return valid.step is None or valid.step.nanos >= _MILLI


def _is_milli(quantity: Quantity) -> bool:
    amount = quantity.nanos
    return amount % _MILLI == 0 and abs(amount // _MILLI) <= _INT64_MAX


def _count_units(quantity: Quantity) -> int:
    """Return the whole units, rounded up, as Quantity.Value counts them."""
    return -(-quantity.nanos // NANO)
