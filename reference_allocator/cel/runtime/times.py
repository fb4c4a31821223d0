"""Durations and timestamps: text forms and calendar accessors, as Go's time package has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final

from reference_allocator.api.quoting import go_quote
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.values import INT_MAX, INT_MIN, Duration, Timestamp

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MIN_SECONDS: Final = -62135596800
MAX_SECONDS: Final = 253402300799


def conversion_error(target: str) -> CelRuntimeError:
    """Return the error of a text that cannot be converted to a type."""
    return CelRuntimeError(f"type conversion error from 'string' to '{target}'")


def parse_duration(text: str) -> Duration:
    """Parse ``1h30m``, ``-1.5s``, ``0``. Raises CelRuntimeError: the text is no duration."""
    error = conversion_error("google.protobuf.Duration")
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    if unsigned == "0":
        return Duration(0)
    if not unsigned or len(text) > 200:
        raise error
    total = 0
    position = 0
    while position < len(unsigned):
        match = _PART.match(unsigned, position)
        if match is None or not (match[1] or match[2]):
            raise error
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        fraction = match[2] or ""
        total += int(fraction or 0) * unit // 10 ** len(fraction)
        position = match.end()
    nanos = -total if text.startswith("-") else total
    if not INT_MIN <= nanos <= INT_MAX:
        raise error
    return Duration(nanos)


def format_duration(value: Duration) -> str:
    """Return the seconds, such as ``90s`` or ``0.001s``."""
    seconds, nanos = divmod(abs(value.nanos), 10**9)
    number = float(seconds) + nanos / 1e9
    if value.nanos < 0:
        number = -number
    text = format(Decimal(repr(number)), "f")
    return f"{text.removesuffix('.0')}s"


def show_duration(value: Duration) -> str:
    """Return the span as Go's ``time.Duration`` prints itself: ``1h30m0s``, ``1.5ms``."""
    nanos = abs(value.nanos)
    if nanos < 10**9:
        size, unit = next(
            (
                size_and_unit
                for size_and_unit in ((10**6, "ms"), (10**3, "\u00b5s"), (1, "ns"))
                if nanos >= size_and_unit[0]
            ),
            (1, "s"),
        )
        text = f"{_format_decimal(nanos, size)}{unit}"
    else:
        hours, remainder = divmod(nanos, 3600 * 10**9)
        minutes, remainder = divmod(remainder, 60 * 10**9)
        text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
        text += f"{_format_decimal(remainder, 10**9)}s"
    return f"-{text}" if value.nanos < 0 else text


def _format_decimal(nanos: int, size: int) -> str:
    whole, remainder = divmod(nanos, size)
    return f"{whole}.{str(size + remainder)[1:].rstrip('0')}" if remainder else str(whole)


def timestamp_from_seconds(seconds: int) -> Timestamp:
    """Return the time of Unix seconds. Raises CelRuntimeError: not in the years 1 to 9999."""
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise CelRuntimeError("timestamp overflow")
    return Timestamp(seconds * 10**9)


def unix_seconds(value: Timestamp) -> int:
    """Return the whole seconds since 1970, rounded down."""
    return value.nanos // 10**9


def parse_timestamp(text: str) -> Timestamp:
    """Parse an RFC 3339 time, or what else Go's ``time.Parse`` takes: an hour of one digit."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise conversion_error("google.protobuf.Timestamp")
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    try:
        moment = datetime(max(year, 1), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise conversion_error("google.protobuf.Timestamp") from None
    seconds = int((moment - _EPOCH) / timedelta(seconds=1))
    zone = match[8]
    if zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if hours > 24 or minutes > 60:  # "some people do write offsets of 24 hours or 60 minutes"
            raise conversion_error("google.protobuf.Timestamp")
        offset = hours * 3600 + minutes * 60
        seconds -= offset if zone[0] == "+" else -offset
    if year == 0 or not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise CelRuntimeError("timestamp overflow")
    nanos = int((match[7] or "0")[:9].ljust(9, "0"))
    return Timestamp(seconds * 10**9 + nanos)


def _to_datetime(value: Timestamp, zone: tzinfo = UTC) -> datetime:
    """Return the calendar time, whole seconds. Raises CelRuntimeError: not in years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(seconds=unix_seconds(value))).astimezone(zone)
    except OverflowError:
        raise CelRuntimeError("timestamp overflow") from None


def format_timestamp(value: Timestamp) -> str:
    """Return the time by RFC 3339 in UTC, with as many digits of a second as needed."""
    nanos = value.nanos % 10**9
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{_to_datetime(value).replace(tzinfo=None).isoformat()}{fraction}Z"


def show_timestamp(value: Timestamp) -> str:
    """Return the time as Go's ``time.Time`` prints itself, always in UTC."""
    day, _, time = format_timestamp(value).removesuffix("Z").partition("T")
    return f"{day} {time} +0000 UTC"


def _parse_zone(name: str) -> tzinfo:
    """Return a zone by name, or by an offset such as ``-08:00`` (cel-go's ``inTimeZone``).

    ``Local`` is UTC, which the control plane's containers have. An offset of a day or more, which
    Go takes, is an error here.
    """
    if name in ("", "UTC", "Local"):
        return UTC
    hours, colon, minutes = name.partition(":")
    if colon:
        for text in (hours, minutes):
            if not re.fullmatch(r"[-+]?[0-9]{1,9}", text):
                raise CelRuntimeError(f"strconv.Atoi: parsing {go_quote(text)}: invalid syntax")
        sign = -1 if name.startswith("-") else 1
        try:
            return timezone(timedelta(hours=int(hours), minutes=sign * int(minutes)))
        except (ValueError, OverflowError):
            raise CelRuntimeError(f"time zone offset {name} is a day or more") from None
    if ".." in name or name[0] in "/\\":
        raise CelRuntimeError("time: invalid location name")
    from zoneinfo import ZoneInfo  # takes time to import, and few expressions need it

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise CelRuntimeError(f"unknown time zone {name}") from None


def _make_accessor(field: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda value, zone="UTC": field(_to_datetime(value, _parse_zone(zone)))


def _count_whole(value: Duration, unit: int) -> int:
    """Return how many of a unit (in nanoseconds) a duration has, towards zero."""
    quotient = abs(value.nanos) // unit
    return -quotient if value.nanos < 0 else quotient


def _make_part_accessor(field: Callable[[datetime], int], unit: int) -> Callable[..., int]:
    """Return a function for a field of a time, or for how many of a unit a duration has."""
    of_time = _make_accessor(field)

    def read(value: Timestamp | Duration, *zone: str) -> int:
        if isinstance(value, Timestamp):
            return of_time(value, *zone)
        return _count_whole(value, unit)

    return read


def _get_milliseconds(value: Timestamp | Duration, zone: str = "UTC") -> int:
    if isinstance(value, Duration):
        return _count_whole(value, 10**6)
    _to_datetime(value, _parse_zone(zone))
    return value.nanos % 10**9 // 10**6


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "getFullYear": _make_accessor(lambda moment: moment.year),
    "getMonth": _make_accessor(lambda moment: moment.month - 1),
    "getDayOfYear": _make_accessor(lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _make_accessor(lambda moment: moment.day - 1),
    "getDate": _make_accessor(lambda moment: moment.day),
    "getDayOfWeek": _make_accessor(lambda moment: moment.isoweekday() % 7),
    "getHours": _make_part_accessor(lambda moment: moment.hour, 3600 * 10**9),
    "getMinutes": _make_part_accessor(lambda moment: moment.minute, 60 * 10**9),
    "getSeconds": _make_part_accessor(lambda moment: moment.second, 10**9),
    "getMilliseconds": _get_milliseconds,
}
