"""Quantities, versions and optional values.

Source: ``k8s.io/apiserver/pkg/cel/library`` and cel-go ``cel/library.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reference_allocator.api.quantity import Quantity, QuantityError, parse_quantity
from reference_allocator.api.semver import Semver, SemverError, normalize_semver, parse_semver
from reference_allocator.cel.errors import CelRuntimeError, as_predicate
from reference_allocator.cel.runtime.values import Duration, Optional, Timestamp


def _parse_quantity_until_1_37(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise CelRuntimeError(str(error)) from None


def _parse_quantity(text: str) -> Quantity:
    return _parse_quantity_until_1_37(text).as_since_1_38()


def _as_integer(value: Quantity) -> int:
    number = value.as_int64()
    if number is None:
        raise CelRuntimeError("cannot convert value to integer")
    return number


def _parse_semver(text: str, normalize: bool = False) -> Semver:
    try:
        return parse_semver(normalize_semver(text) if normalize else text)
    except SemverError as error:
        raise CelRuntimeError(str(error)) from None


def _int64(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def is_zero_value(value: Any) -> bool:
    """Return whether ``optional.ofNonZeroValue`` drops the value."""
    if value is None or isinstance(value, (int, float, str, bytes, list, dict)):
        return not value
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp):  # Go's zero time is the year 1
        return value.nanos == -62135596800 * 10**9
    return False


def _unwrap(values: list[Any]) -> list[Any]:
    result = []
    for value in values:
        if value.__class__ is not Optional:
            raise CelRuntimeError(f"value {value} is not optional")
        if value.present:
            result.append(value.value)
    return result


def _of_non_zero(value: Any) -> Optional:
    return Optional(present=False) if is_zero_value(value) else Optional(value, present=True)


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_quantity": _parse_quantity,
    "string_to_quantity@1.37": _parse_quantity_until_1_37,
    "is_quantity_string": as_predicate(_parse_quantity),
    "quantity_add": lambda a, b: a.add(b, derived=True),
    "quantity_add_int": lambda a, b: a.add(Quantity(b, 0, "DecimalExponent"), derived=True),
    "quantity_sub": lambda a, b: a.sub(b, derived=True),
    "quantity_sub_int": lambda a, b: a.sub(Quantity(b, 0, "DecimalExponent"), derived=True),
    "quantity_get_float": lambda a: a.as_float(),
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda a: a.as_int64() is not None,
    "quantity_sign": lambda a: a.sign(),
    "quantity_compare_to": lambda a, b: a.compare(b),
    "quantity_is_greater_than": lambda a, b: a.nanos > b.nanos,
    "quantity_is_less_than": lambda a, b: a.nanos < b.nanos,
    "semver": _parse_semver,
    "isSemver": as_predicate(_parse_semver),
    "semver_compare_to": lambda a, b: a.compare(b),
    "semver_is_greater_than": lambda a, b: a.precedence > b.precedence,
    "semver_is_less_than": lambda a, b: a.precedence < b.precedence,
    "semver_major": lambda a: _int64(a.major),
    "semver_minor": lambda a: _int64(a.minor),
    "semver_patch": lambda a: _int64(a.patch),
    "optional_none": lambda: Optional(present=False),
    "optional_of": lambda value: Optional(value, present=True),
    "optional_ofNonZeroValue": _of_non_zero,
    "optional_hasValue": lambda value: value.present,
    "optional_value": lambda value: value.get(),
    "optional_or_optional": lambda a, b: a if a.present else b,
    "optional_orValue_value": lambda a, b: a.value if a.present else b,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
}
