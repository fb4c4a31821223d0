"""Rules about shares of devices: what they consume, and that the device has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TypeVar

from reference_allocator.api import DeviceCapacity, DeviceId, RequestPolicy, RequestSpec
from reference_allocator.api.quantity import Quantity, parse_quantity
from reference_allocator.checks.case import Case, DeviceResult, Published, Violation
from reference_allocator.features import Features
from reference_allocator.rules.capacity import NANO

T = TypeVar("T", Quantity, DeviceCapacity)

_INT64_MAX = 2**63 - 1

PLACEHOLDER_SHARE_ID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
"""The id that comparisons of allocators put in place of every generated share id."""


def shares_are_marked(case: Case) -> Iterator[Violation]:
    """Shares, and only shares, have a share id of their own and what they consume."""
    used = {
        (result.id, result.share_id)
        for results in case.held.values()
        for result in results
        if result.share_id is not None
    }
    for item in case.device_results:
        if item.published is None:
            continue
        share_id = item.result.share_id
        if not case.may_be_shared(item.published):
            if share_id is not None or item.result.consumed_capacity:
                yield item.make_violation(
                    "share", "the device cannot be shared, the result says so"
                )
            continue
        if not share_id:
            yield item.make_violation("share", "a share of the device needs a shareID")
        elif (item.result.id, share_id) in used and share_id != PLACEHOLDER_SHARE_ID:
            yield item.make_violation("share", f"shareID {share_id} is in use")
        if share_id:
            used.add((item.result.id, share_id))


def capacity_suffices(case: Case) -> Iterator[Violation]:
    """Each share consumes what its request and the policy say, and all fit into the device."""
    if not case.features.consumable_capacity:
        return
    totals: dict[DeviceId, dict[str, int]] = {}
    for results in case.held.values():
        for result in results:
            if result.share_id is not None:
                _add_amounts(
                    totals.setdefault(result.id, {}),
                    _complete_names(case, result.consumed_capacity, result.id.driver),
                )
    for item in case.device_results:
        if item.spec is not None and item.published is not None:
            yield from _check_amounts(case, item, item.spec, item.published, totals)


def _check_amounts(
    case: Case,
    item: DeviceResult,
    spec: RequestSpec,
    published: Published,
    totals: dict[DeviceId, dict[str, int]],
) -> Iterator[Violation]:
    driver = published.slice.driver
    asked = {} if spec.capacity is None else spec.capacity.requests
    requested = _complete_names(case, asked, driver)
    if len(requested) < len(asked):
        yield item.make_violation("capacity", "requests a capacity by both its names")
    capacities = _complete_names(case, published.device.capacity, driver)
    consumed_capacity = _complete_names(case, item.result.consumed_capacity, driver)
    for name in requested:
        if name not in capacities:
            yield item.make_violation("capacity", f"the device has no capacity {name}")
    shared = case.may_be_shared(published)
    total = totals.setdefault(item.result.id, {})
    for name, capacity in capacities.items():
        expected = allowed_amount(requested.get(name), capacity, case.features)
        if expected is None:
            yield item.make_violation(
                "capacity", f"the policy of {name} does not allow {requested.get(name)}"
            )
            continue
        if shared:
            consumed = consumed_capacity.get(name)
            if consumed is None or consumed.nanos not in _written_amounts(case, expected):
                yield item.make_violation(
                    "capacity",
                    f"consumes {consumed} of {name}, the request comes to {_show_amount(expected)}",
                )
        new_total = total.get(name, 0) + expected
        if shared:
            total[name] = new_total
        if new_total > capacity.value.nanos:
            yield item.make_violation(
                "capacity", f"{name}: {_show_amount(new_total)} consumed of {capacity.value}"
            )
    for name in consumed_capacity:
        if name not in capacities:
            yield item.make_violation(
                "capacity", f"consumes {name}, which the device does not have"
            )


def _written_amounts(case: Case, amount: int) -> tuple[int, ...]:
    """Return what a result may say of an amount, in units of 1e-9.

    Until 1.37 an amount beyond the largest suffix loses its exponent (``2000E`` is ``2``) where it
    is written (CanonicalizeBytes in apimachinery's quantity.go).
    """
    if case.rules.reads_inner_types:
        return (amount,)
    return amount, parse_quantity(Quantity.from_nanos(amount).canonical()).nanos


def _complete_names(case: Case, named: Mapping[str, T], driver: str) -> Mapping[str, T]:
    """Return values by the names that count: since 1.38 those with the driver's domain.

    Of both spellings of one name the complete one counts. The values are as 1.38 reads them.
    """
    if not case.rules.reads_inner_types:
        return named
    read = {name: value.as_since_1_38() for name, value in named.items()}
    bare = {f"{driver}/{name}": value for name, value in read.items() if "/" not in name}
    return bare | {name: value for name, value in read.items() if "/" in name}


def could_fit(case: Case, spec: RequestSpec, published: Published) -> bool:
    """Return whether the device, unused, has enough capacity for the request."""
    if not case.features.consumable_capacity:
        return True
    driver = published.slice.driver
    asked = {} if spec.capacity is None else spec.capacity.requests
    requested = _complete_names(case, asked, driver)
    capacities = _complete_names(case, published.device.capacity, driver)
    if any(name not in capacities for name in requested):
        return False
    for name, capacity in capacities.items():
        amount = allowed_amount(requested.get(name), capacity, case.features)
        if amount is None or amount > capacity.value.nanos:
            return False
    return True


def allowed_amount(
    requested: Quantity | None, capacity: DeviceCapacity, features: Features
) -> int | None:
    """Return what a request comes to, in units of 1e-9; None where the policy forbids it."""
    policy = capacity.request_policy
    if policy is None:
        return (capacity.value if requested is None else requested).nanos
    default = None if policy.default is None else policy.default.nanos
    if requested is None and default is not None:
        return default
    amount = capacity.value.nanos if requested is None else requested.nanos
    rounded = amount if requested is None else _round_up(amount, policy, features)
    if rounded == default:
        return rounded
    return rounded if _is_valid(rounded, policy, features) else None


def _round_up(amount: int, policy: RequestPolicy, features: Features) -> int:
    """Return the smallest amount of the policy that is enough; the amount itself where none is."""
    valid = policy.valid_range
    if valid is not None and valid.min is not None:
        low = valid.min.nanos
        if amount < low or valid.step is None:
            return max(amount, low)
        unit = _unit(policy, features)
        step = _ceil_to(valid.step.nanos, unit)
        low = _ceil_to(low, unit)
        if step == 0:
            return amount  # No amount is valid then.
        steps = Fraction(_ceil_to(amount, unit) - low, step)
        return low + step * -(-steps.numerator // steps.denominator)
    return min((v.nanos for v in policy.valid_values or () if v.nanos >= amount), default=amount)


def _is_valid(amount: int, policy: RequestPolicy, features: Features) -> bool:
    valid = policy.valid_range
    if valid is None:
        return not policy.valid_values or amount in [value.nanos for value in policy.valid_values]
    if valid.max is not None and amount > valid.max.nanos:
        return False
    if valid.step is None:
        return True
    unit = _unit(policy, features)
    if unit < NANO and amount > _INT64_MAX * unit:
        return False  # In thousandths it is too large.
    low = 0 if valid.min is None else valid.min.nanos
    step = _ceil_to(valid.step.nanos, unit)
    return step != 0 and (_ceil_to(amount, unit) - _ceil_to(low, unit)) % step == 0


def _unit(policy: RequestPolicy, features: Features) -> int:
    """Return the unit of ranges: a whole, or a thousandth where feature and 64 bits allow it."""
    assert policy.valid_range is not None
    step = policy.valid_range.step
    bounds = (policy.valid_range.min, policy.valid_range.max, step)
    milli = NANO // 1000
    exact = all(
        bound.nanos % milli == 0 and abs(bound.nanos) <= _INT64_MAX * milli
        for bound in bounds
        if bound is not None
    )
    exact = exact and (step is None or step.nanos >= milli)
    return milli if features.fractional_capacity_range and exact else NANO


def _ceil_to(amount: int, unit: int) -> int:
    """Return the next multiple of a unit, away from zero."""
    return -(-amount // unit) * unit if amount >= 0 else amount // unit * unit


def _add_amounts(total: dict[str, int], amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount.nanos


def _show_amount(amount: int) -> str:
    exact = Fraction(amount, NANO)
    return str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.9g}"
