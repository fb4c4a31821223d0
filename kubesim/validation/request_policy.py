"""How requests may consume the capacity of a device that is shared (KEP-5075).

Source: validateRequestPolicy and what it calls in pkg/apis/resource/validation/validation.go of
1.37, which counts in thousandths where a range has a fraction (DRAFractionalCapacityRange), and in
whole numbers, rounded up, where that gate is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kube.values import Obj
from kubesim.validation.errors import FieldError, check_unique, forbidden, invalid, required
from reference_allocator.api.quantity import Quantity, parse_quantity

_VALUES_MAX: Final = 10
_ONE: Final = 10**9
_MILLI: Final = 10**6
_INT64_MAX: Final = 2**63 - 1


def check_policy(
    policy: Obj, capacity: Any, path: str, *, fractional: bool = True, bounded: bool = True
) -> Iterator[FieldError]:
    """Check a new or changed policy of a capacity of which there is ``capacity``.

    Args:
        fractional: whether DRAFractionalCapacityRange is on.
        bounded: whether what no int64 can hold and steps that lead nowhere are refused, as from
            1.37 on.
    """
    values, valid_range = policy.get("validValues") or [], policy.get("validRange")
    if values and valid_range is not None:
        detail = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" at '
            "the same time"
        )
        yield forbidden(path, detail)
        return
    field = "validValues" if values else "validRange"
    if not values and valid_range is None:
        return
    if policy.get("default") is None:
        yield required(f"{path}.default", f"required when {field} is defined")
        return
    default, limit = _parse_any_quantity(policy["default"]), _parse_any_quantity(capacity)
    if values:
        parsed = list(map(_parse_any_quantity, values))
        inner = f"{path}.{field}"
        yield from _check_valid_values(parsed, default, limit, inner, fractional=fractional)
    else:
        bounds = {name: _parse_any_quantity(value) for name, value in (valid_range or {}).items()}
        inner = f"{path}.{field}"
        options = {"fractional": fractional, "bounded": bounded}
        yield from _check_valid_range(bounds, default, limit, inner, **options)


def _parse_any_quantity(value: Any) -> Quantity:
    return parse_quantity(str(value))


def _round(value: Quantity) -> int:
    """Return the whole number next to a quantity, away from 0 (``Quantity.Value``)."""
    whole = -(-abs(value.nanos) // _ONE)
    return whole if value.nanos >= 0 else -whole


def _check_valid_values(
    values: list[Quantity], default: Quantity, capacity: Quantity, path: str, *, fractional: bool
) -> Iterator[FieldError]:
    for index in range(1, len(values)):
        if values[index] < values[index - 1]:
            detail = "values must be sorted in ascending order"
            yield invalid(f"{path}[{index}]", str(values[index]), detail)

    def check(value: Quantity, path: str) -> Iterator[FieldError]:
        if capacity < value:
            yield invalid(path, str(value), f"option is larger than capacity value: {capacity}")

    def identify(value: Quantity) -> str:
        return str(value.nanos if fractional else _round(value))

    yield from check_unique(values, _VALUES_MAX, check, path, identify, str)
    if default not in values or len(values) > _VALUES_MAX:
        detail = "default value is not valid according to the requestPolicy"
        yield invalid(path, str(default), detail)


def _check_valid_range(
    bounds: dict[str, Quantity],
    default: Quantity,
    capacity: Quantity,
    path: str,
    *,
    fractional: bool,
    bounded: bool,
) -> Iterator[FieldError]:
    least, greatest, step = (bounds.get(name) for name in ("min", "max", "step"))
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    if capacity < least:
        detail = f"min is larger than capacity value: {capacity}"
        yield invalid(f"{path}.min", str(least), detail)
    if default < least:
        yield invalid(f"{path}.default", str(default), f"default is less than min: {least}")
    if greatest is not None:
        if greatest < least:
            yield invalid(f"{path}.max", str(least), f"min is larger than max: {greatest}")
        if capacity < greatest:
            detail = f"max is larger than capacity value: {capacity}"
            yield invalid(f"{path}.max", str(greatest), detail)
        if greatest < default:
            detail = f"default is more than max: {greatest}"
            yield invalid(f"{path}.default", str(default), detail)
    all_of_them = {"default": default, **bounds}
    in_thousandths = fractional and any(value.nanos % _ONE for value in all_of_them.values())
    if in_thousandths:
        too_fine = [name for name, value in all_of_them.items() if value.nanos % _MILLI]
        for name in too_fine:
            detail = "value cannot be represented as a milli value"
            yield invalid(f"{path}.{name}", str(all_of_them[name]), detail)
        if too_fine:
            return
    if step is None:
        return
    if bounded and step.sign() <= 0:
        yield invalid(f"{path}.step", str(step), "must be greater than zero")
        return
    if capacity < least.add(step):
        detail = f"one step {least.add(step)} is larger than capacity value: {capacity}"
        yield invalid(f"{path}.step", str(step), detail)
    unsafe = tuple(_check_int64(all_of_them, path)) if bounded and not in_thousandths else ()
    yield from unsafe
    count = (lambda value: value.nanos) if in_thousandths else _round
    for value in () if unsafe or not count(step) else (default, greatest):
        if value is not None and (count(value) - count(least)) % count(step):
            detail = f"value is not a multiple of a given step ({step}) from ({least})"
            yield invalid(f"{path}.step", str(value), detail)


def _check_int64(bounds: dict[str, Quantity], path: str) -> Iterator[FieldError]:
    for name, value in bounds.items():
        if value.sign() < 0:
            yield invalid(f"{path}.{name}", str(value), "must be greater than or equal to 0")
        elif value.nanos > _INT64_MAX * _ONE:
            yield invalid(f"{path}.{name}", str(value), f"must not be larger than {_INT64_MAX}")
