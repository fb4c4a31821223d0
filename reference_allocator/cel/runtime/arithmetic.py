"""``+ - * / %`` and negation: 64 bits, no wrapping, Go's rounding.

Source: cel-go ``common/types/overflow.go``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime import values
from reference_allocator.cel.runtime.equality import no_overload
from reference_allocator.cel.runtime.times import MAX_SECONDS, MIN_SECONDS, unix_seconds

_NUMBERS: Final = (int, values.UInt, float)


def _check(function: str, kinds: tuple[type, ...], left: Any, right: Any) -> None:
    """Both have to be of one type, which the operator knows; raises cel-go's error."""
    if left.__class__ not in kinds and not isinstance(
        left, (str, values.Timestamp, values.Duration)
    ):
        raise no_overload(function)
    if left.__class__ not in kinds or left.__class__ is not right.__class__:
        raise no_overload()


def _int(value: int) -> int:
    if not values.INT_MIN <= value <= values.INT_MAX:
        raise CelRuntimeError("integer overflow")
    return value


def _uint(value: int) -> values.UInt:
    if not 0 <= value <= values.UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return values.UInt(value)


def _shifted(start: values.Timestamp, nanos: int) -> values.Timestamp:
    """A time later by a duration; the seconds have to fit 64 bits, and the years 1 to 9999."""
    seconds, rest = divmod(nanos, 10**9)
    if nanos < 0 and rest:  # Go truncates toward zero, and adds the rest afterwards
        seconds, rest = seconds + 1, rest - 10**9
    total = _int(unix_seconds(start) + seconds)
    carry, rest = divmod(start.nanos % 10**9 + rest, 10**9)
    shifted = _int(total + carry) * 10**9 + rest
    if not MIN_SECONDS <= shifted // 10**9 <= MAX_SECONDS:
        raise CelRuntimeError("timestamp overflow")
    return values.Timestamp(shifted)


def add(left: Any, right: Any) -> Any:
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        return _int(left + right)
    if kind is values.Duration and other is values.Duration:
        return values.Duration(_int(left.nanos + right.nanos))
    if kind is values.Timestamp and other is values.Duration:
        return _shifted(left, right.nanos)
    if kind is values.Duration and other is values.Timestamp:
        return _shifted(right, left.nanos)
    _check("_+_", (str, bytes, list, *_NUMBERS), left, right)
    return _uint(int(left) + int(right)) if kind is values.UInt else left + right


def subtract(left: Any, right: Any) -> Any:
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        return _int(left - right)
    if kind is values.Timestamp and other is values.Duration:
        return _shifted(left, _int(-right.nanos))
    if kind is other and kind in (values.Timestamp, values.Duration):
        return values.Duration(_int(left.nanos - right.nanos))
    _check("_-_", _NUMBERS, left, right)
    return _uint(int(left) - int(right)) if kind is values.UInt else left - right


def multiply(left: Any, right: Any) -> Any:
    kind = left.__class__
    _check("_*_", _NUMBERS, left, right)
    if kind is int:
        return _int(left * right)
    return _uint(int(left) * int(right)) if kind is values.UInt else left * right


def divide(left: Any, right: Any) -> Any:
    """``left / right``, toward zero for integers."""
    kind = left.__class__
    _check("_/_", _NUMBERS, left, right)
    if kind is float:
        if right == 0:
            if left == 0 or left != left:
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1.0, right)
        return left / right
    if right == 0:
        raise CelRuntimeError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    if kind is values.UInt:
        return values.UInt(quotient)
    return _int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Any, right: Any) -> Any:
    """``left % right``, with the sign of ``left``."""
    kind = left.__class__
    _check("_%_", (int, values.UInt), left, right)
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    if kind is values.UInt:
        return values.UInt(int(left) % int(right))
    if left == values.INT_MIN and right == -1:
        return _int(values.INT_MAX + 1)
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Any) -> Any:
    kind = value.__class__
    if kind is int:
        return _int(-value)
    if kind is float:
        return -value
    if kind is values.Duration:
        return values.Duration(_int(-value.nanos))
    raise no_overload() if isinstance(value, (str, values.Timestamp, bool)) else no_overload("-_")


OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
}
