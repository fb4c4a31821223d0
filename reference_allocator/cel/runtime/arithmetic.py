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


def _check_types(function: str, kinds: tuple[type, ...], left: Any, right: Any) -> None:
    """Raise cel-go's error unless both are of one type, which the operator knows."""
    if left.__class__ not in kinds and not isinstance(
        left, (str, values.Timestamp, values.Duration)
    ):
        raise no_overload(function)
    if left.__class__ not in kinds or left.__class__ is not right.__class__:
        raise no_overload()


def _check_int(value: int) -> int:
    if not values.INT_MIN <= value <= values.INT_MAX:
        raise CelRuntimeError("integer overflow")
    return value


def _check_uint(value: int) -> values.UInt:
    if not 0 <= value <= values.UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return values.UInt(value)


def _shift_time(start: values.Timestamp, nanos: int) -> values.Timestamp:
    """Return a time later by a duration; seconds have to fit 64 bits, and the years 1 to 9999."""
    seconds, remainder = divmod(nanos, 10**9)
    if nanos < 0 and remainder:  # Go truncates toward zero, and adds the rest afterwards
        seconds, remainder = seconds + 1, remainder - 10**9
    total = _check_int(unix_seconds(start) + seconds)
    carry, remainder = divmod(start.nanos % 10**9 + remainder, 10**9)
    shifted = _check_int(total + carry) * 10**9 + remainder
    if not MIN_SECONDS <= shifted // 10**9 <= MAX_SECONDS:
        raise CelRuntimeError("timestamp overflow")
    return values.Timestamp(shifted)


def add(left: Any, right: Any) -> Any:
    """Evaluate ``left + right``."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        return _check_int(left + right)
    if kind is values.Duration and other is values.Duration:
        return values.Duration(_check_int(left.nanos + right.nanos))
    if kind is values.Timestamp and other is values.Duration:
        return _shift_time(left, right.nanos)
    if kind is values.Duration and other is values.Timestamp:
        return _shift_time(right, left.nanos)
    _check_types("_+_", (str, bytes, list, *_NUMBERS), left, right)
    return _check_uint(int(left) + int(right)) if kind is values.UInt else left + right


def subtract(left: Any, right: Any) -> Any:
    """Evaluate ``left - right``."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        return _check_int(left - right)
    if kind is values.Timestamp and other is values.Duration:
        return _shift_time(left, _check_int(-right.nanos))
    if kind is other and kind in (values.Timestamp, values.Duration):
        return values.Duration(_check_int(left.nanos - right.nanos))
    _check_types("_-_", _NUMBERS, left, right)
    return _check_uint(int(left) - int(right)) if kind is values.UInt else left - right


def multiply(left: Any, right: Any) -> Any:
    """Evaluate ``left * right``."""
    kind = left.__class__
    _check_types("_*_", _NUMBERS, left, right)
    if kind is int:
        return _check_int(left * right)
    return _check_uint(int(left) * int(right)) if kind is values.UInt else left * right


def divide(left: Any, right: Any) -> Any:
    """Evaluate ``left / right``, toward zero for integers."""
    kind = left.__class__
    _check_types("_/_", _NUMBERS, left, right)
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
    return _check_int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Any, right: Any) -> Any:
    """Evaluate ``left % right``, with the sign of ``left``."""
    kind = left.__class__
    _check_types("_%_", (int, values.UInt), left, right)
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    if kind is values.UInt:
        return values.UInt(int(left) % int(right))
    if left == values.INT_MIN and right == -1:
        return _check_int(values.INT_MAX + 1)
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Any) -> Any:
    """Evaluate ``-value``."""
    kind = value.__class__
    if kind is int:
        return _check_int(-value)
    if kind is float:
        return -value
    if kind is values.Duration:
        return values.Duration(_check_int(-value.nanos))
    raise no_overload() if isinstance(value, (str, values.Timestamp, bool)) else no_overload("-_")


OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
}
