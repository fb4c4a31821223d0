"""Quantities as whole numbers, for the sums that a search makes again and again.

A resource.Quantity has no digits beyond 1e-9, so `Quantity.nanos` is exact, comparable, hashable,
and cheap to add. This module has what else the allocator needs of apimachinery's quantities: new
ones in a given format, and Go's `==` between two.
"""

from __future__ import annotations

from typing import Final

from reference_allocator.api.quantity import Quantity

NANO: Final = 10**9
"""Nano units in one unit."""


def from_units(units: int, *, like: Quantity) -> Quantity:
    """A quantity of whole units, printed in the format of another one (resource.NewQuantity)."""
    return Quantity(units, 0, like.format)


def from_milli(milli: int, *, like: Quantity) -> Quantity:
    """A quantity of thousandths, printed in the format of another one.

    Whole numbers are kept as such, as upstream's roundUpRange does.
    """
    if milli % 1000 == 0:
        return from_units(milli // 1000, like=like)
    return Quantity(milli, -3, like.format)


def as_int64(value: int) -> int:
    """The value as Go's arithmetic leaves it in an int64: it wraps around."""
    return (value + 2**63) % 2**64 - 2**63


def quotient(dividend: int, divisor: int) -> int:
    """The quotient as Go divides: towards zero."""
    found = abs(dividend) // abs(divisor)
    return found if (dividend < 0) == (divisor < 0) else -found


def same_representation(left: Quantity, right: Quantity) -> bool:
    """Whether Go's `==` finds the two structs equal.

    Equal amounts are not enough: form, scale, format and the text kept from parsing have to be the
    same (1Ki is not 1024 here), and two amounts kept as decimals never are.
    """
    if left.decimal or right.decimal:
        return False
    return (left.value, left.scale, left.format, left.text) == (
        right.value,
        right.scale,
        right.format,
        right.text,
    )
