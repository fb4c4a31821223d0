"""``+ - * / %`` and negation: 64 bits, no wrapping, Go's rounding.

Source: cel-go ``common/types/overflow.go``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.equality import no_overload
from reference_allocator.cel.runtime.times import unix_seconds
from reference_allocator.cel.runtime.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Timestamp,
    UInt,
)

_RECEIVERS: Final = (str, Timestamp, Duration)
_TIME_MIN: Final = -62135596800 * 10**9
_TIME_MAX: Final = 253402300799 * 10**9 + 999_999_999


def _unsupported(function: str, left: Any) -> CelRuntimeError:
    return no_overload() if isinstance(left, _RECEIVERS) else no_overload(function)


def _int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise CelRuntimeError("integer overflow")
    return value


def _uint(value: int) -> UInt:
    if not 0 <= value <= UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return UInt(value)


def _duration(nanos: int) -> Duration:
    return Duration(_int(nanos))


def _shifted(start: Timestamp, nanos: int) -> Timestamp:
    """A time later by a duration; the seconds have to fit 64 bits, and the years 1 to 9999."""
    seconds, rest = divmod(nanos, 10**9)
    if nanos < 0 and rest:  # Go truncates toward zero, and adds the rest afterwards
        seconds, rest = seconds + 1, rest - 10**9
    total = _int(unix_seconds(start) + seconds)
    carry, rest = divmod(start.nanos % 10**9 + rest, 10**9)
    shifted = _int(total + carry) * 10**9 + rest
    if not _TIME_MIN <= shifted <= _TIME_MAX:
        raise CelRuntimeError("timestamp overflow")
    return Timestamp(shifted)


def add(left: Any, right: Any) -> Any:
    """``left + right``."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        return _int(left + right)
    if kind in (Timestamp, Duration) and other in (Timestamp, Duration):
        if kind is Duration and other is Duration:
            return _duration(left.nanos + right.nanos)
        if kind is Timestamp and other is Timestamp:
            raise no_overload()
        time, span = (left, right) if kind is Timestamp else (right, left)
        return _shifted(time, span.nanos)
    if kind not in (str, bytes, list, int, UInt, float, Timestamp, Duration):
        raise _unsupported("_+_", left)
    if kind is not other:
        raise no_overload()
    return _uint(int(left) + int(right)) if kind is UInt else left + right


def subtract(left: Any, right: Any) -> Any:
    """``left - right``."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        return _int(left - right)
    if kind is Timestamp and other in (Timestamp, Duration):
        if other is Timestamp:
            return _duration(left.nanos - right.nanos)
        return _shifted(left, _int(-right.nanos))
    if kind not in (int, UInt, float, Timestamp, Duration):
        raise _unsupported("_-_", left)
    if kind is not other:
        raise no_overload()
    if kind is Duration:
        return _duration(left.nanos - right.nanos)
    return _uint(int(left) - int(right)) if kind is UInt else left - right


def multiply(left: Any, right: Any) -> Any:
    """``left * right``."""
    kind = left.__class__
    if kind not in (int, UInt, float):
        raise _unsupported("_*_", left)
    if kind is not right.__class__:
        raise no_overload()
    if kind is int:
        return _int(left * right)
    return _uint(int(left) * int(right)) if kind is UInt else left * right


def divide(left: Any, right: Any) -> Any:
    """``left / right``, toward zero for integers."""
    kind = left.__class__
    if kind not in (int, UInt, float):
        raise _unsupported("_/_", left)
    if kind is not right.__class__:
        raise no_overload()
    if kind is float:
        if right == 0:
            if left == 0 or left != left:
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1.0, right)
        return left / right
    if right == 0:
        raise CelRuntimeError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    if kind is UInt:
        return UInt(quotient)
    return _int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Any, right: Any) -> Any:
    """``left % right``, with the sign of ``left``."""
    kind = left.__class__
    if kind not in (int, UInt):
        raise _unsupported("_%_", left)
    if kind is not right.__class__:
        raise no_overload()
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    if kind is UInt:
        return UInt(int(left) % int(right))
    if left == INT_MIN and right == -1:
        return _int(INT_MAX + 1)
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(value: Any) -> Any:
    """``-value``."""
    kind = value.__class__
    if kind is int:
        return _int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return _duration(-value.nanos)
    raise no_overload() if isinstance(value, (str, Timestamp, bool)) else no_overload("-_")


OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
}
