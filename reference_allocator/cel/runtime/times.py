"""Durations and timestamps: text forms and calendar accessors, as Go's time package has them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from datetime import MAXYEAR, UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import PurePosixPath
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
_BEFORE_YEAR_ONE: Final = 292277022400 * 31556952 + 306 * 86400
"""Seconds from Go's first day to the year 1 (``absoluteYears`` and ``marchThruDecember``)."""
_YEAR: Final = 366 * 86400
_CYCLE: Final = 146097 * 86400
"""400 years."""


def unreadable(target: str) -> CelRuntimeError:
    """The error of a text that is not one of a type."""
    return CelRuntimeError(f"type conversion error from 'string' to '{target}'")


def parse_duration(text: str) -> Duration:
    """``1h30m``, ``-1.5s``, ``0``."""
    error = unreadable("google.protobuf.Duration")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    if not rest or len(text) > 200:
        raise error
    total = 0
    position = 0
    while position < len(rest):
        match = _PART.match(rest, position)
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
    """The seconds, such as ``90s`` or ``0.001s``."""
    seconds, nanos = divmod(abs(value.nanos), 10**9)
    number = float(seconds) + nanos / 1e9
    if value.nanos < 0:
        number = -number
    text = format(Decimal(repr(number)), "f")
    return f"{text.removesuffix('.0')}s"


def show_duration(value: Duration) -> str:
    """The span as Go's ``time.Duration`` prints itself: ``1h30m0s``, ``1.5ms``."""
    nanos = abs(value.nanos)
    if nanos < 10**9:
        size, unit = next(
            (each for each in ((10**6, "ms"), (10**3, "\u00b5s"), (1, "ns")) if nanos >= each[0]),
            (1, "s"),
        )
        text = f"{_decimal(nanos, size)}{unit}"
    else:
        hours, rest = divmod(nanos, 3600 * 10**9)
        minutes, rest = divmod(rest, 60 * 10**9)
        text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
        text += f"{_decimal(rest, 10**9)}s"
    return f"-{text}" if value.nanos < 0 else text


def _decimal(nanos: int, size: int) -> str:
    whole, rest = divmod(nanos, size)
    return f"{whole}.{str(size + rest)[1:].rstrip('0')}" if rest else str(whole)


def timestamp_from_seconds(seconds: int) -> Timestamp:
    """A time from Unix seconds."""
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise CelRuntimeError("timestamp overflow")
    return Timestamp(seconds * 10**9)


def timestamp_of(seconds: int = 0, nanos: int = 0) -> Timestamp:
    """The time of the fields of a protobuf Timestamp, of any year (Go's ``time.Unix``)."""
    whole, rest = divmod(nanos, 10**9)
    # Go counts seconds since the year 1, in 64 bits that may overflow.
    since_year_one = seconds + whole - MIN_SECONDS
    return Timestamp((_int64(since_year_one) + MIN_SECONDS) * 10**9 + rest)


def duration_of(seconds: int = 0, nanos: int = 0) -> Duration:
    """The span of the fields of a protobuf Duration, the nearest one that fits 64 bits."""
    return Duration(min(max(seconds * 10**9 + nanos, INT_MIN), INT_MAX))


def unix_seconds(value: Timestamp) -> int:
    """Whole seconds since 1970, in 64 bits."""
    return _int64(value.nanos // 10**9)


def _int64(value: int) -> int:
    return (value - INT_MIN) % 2**64 + INT_MIN


def parse_timestamp(text: str) -> Timestamp:
    """An RFC 3339 time, with what else Go's ``time.Parse`` takes: an hour of one digit."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise unreadable("google.protobuf.Timestamp")
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    try:
        moment = datetime(max(year, 1), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise unreadable("google.protobuf.Timestamp") from None
    seconds = int((moment - _EPOCH) / timedelta(seconds=1))
    zone = match[8]
    if zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if hours > 24 or minutes > 60:  # "some people do write offsets of 24 hours or 60 minutes"
            raise unreadable("google.protobuf.Timestamp")
        offset = hours * 3600 + minutes * 60
        seconds -= offset if zone[0] == "+" else -offset
    if year == 0 or not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise CelRuntimeError("timestamp overflow")
    nanos = int((match[7] or "0")[:9].ljust(9, "0"))
    return Timestamp(seconds * 10**9 + nanos)


_Offset = Callable[[int], int]
"""Of a time in Unix seconds to the seconds that a zone is ahead of UTC then."""


def _utc(_seconds: int) -> int:
    return 0


def _go_seconds(value: Timestamp) -> int:
    """Unix seconds as Go's calendar sees them: before its first day it counts from the end."""
    seconds = value.nanos // 10**9
    return seconds + 2**64 if seconds - MIN_SECONDS < -_BEFORE_YEAR_ONE else seconds


def _in_python(seconds: int) -> tuple[datetime, int]:
    """The calendar's time, and how many years have to be added to what Python can represent.

    The calendar repeats itself every 400 years, weekdays included.
    """
    cycles = 0
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        cycles = (seconds - MAX_SECONDS // 2) // _CYCLE
        seconds -= cycles * _CYCLE
    return _EPOCH + timedelta(seconds=seconds), 400 * cycles


def _local(value: Timestamp, offset: _Offset) -> tuple[datetime, int]:
    seconds = _go_seconds(value)
    return _in_python(seconds + offset(seconds))


def format_timestamp(value: Timestamp) -> str:
    """RFC 3339 in UTC with as many digits of a second as needed."""
    moment, years = _local(value, _utc)
    year = moment.year + years
    nanos = value.nanos % 10**9
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{'-' * (year < 0)}{abs(year):04d}{moment:-%m-%dT%H:%M:%S}{fraction}Z"


def show_timestamp(value: Timestamp) -> str:
    """The time as Go's ``time.Time`` prints itself, always in UTC."""
    day, _, time = format_timestamp(value).removesuffix("Z").partition("T")
    return f"{day} {time} +0000 UTC"


@cache
def _regions() -> frozenset[str]:
    """What has zones in it, such as ``America/Argentina``: folders of the time zone database."""
    from zoneinfo import available_timezones  # takes time to import, and few expressions need it

    parents = (PurePosixPath(name).parents for name in available_timezones())
    return frozenset(str(parent) for each in parents for parent in each)


def _atoi(text: str) -> int:
    """Go's ``strconv.Atoi``."""
    problem = ""
    if not re.fullmatch(r"[-+]?[0-9]+", text):
        problem = "invalid syntax"
    elif len(text) > 400 or not INT_MIN <= int(text) <= INT_MAX:
        problem = "value out of range"
    if problem:
        raise CelRuntimeError(f"strconv.Atoi: parsing {go_quote(text)}: {problem}")
    return int(text)


def _zone(name: str) -> _Offset:
    """A zone by name, or an offset such as ``-08:00`` (cel-go ``stdlib``, ``inTimeZone``).

    The offset has no limits. ``Local`` is UTC, which the control plane's containers have.
    """
    hours_text, colon, minutes_text = name.partition(":")
    if not colon:
        return _named_zone(name)
    hours, minutes = _atoi(hours_text), _atoi(minutes_text)
    total = _int64(hours * 60 - minutes if name.startswith("-") else hours * 60 + minutes)
    nanos = _int64(total * 60 * 10**9)
    whole = _truncate(nanos, 10**9)
    offset = int(float(whole) + (nanos - whole * 10**9) / 1e9)
    return lambda _: offset


def _named_zone(name: str) -> _Offset:
    if name in ("", "UTC", "Local"):
        return _utc
    if ".." in name or name[0] in "/\\":
        raise CelRuntimeError("time: invalid location name")
    plain = posixpath.normpath(name)
    if plain in _regions():
        raise CelRuntimeError("is a directory")
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(plain)
    except (ValueError, OSError, KeyError):
        raise CelRuntimeError(f"unknown time zone {name}") from None

    def offset(seconds: int) -> int:
        # Before Python's first years a zone has its local mean time, as in them.
        moment, _ = _in_python(max(seconds, MIN_SECONDS + _YEAR))
        if moment.year == MAXYEAR:
            moment = moment.replace(year=MAXYEAR - 400)
        found = moment.astimezone(zone).utcoffset()
        assert found is not None
        return int(found.total_seconds())

    return offset


def _truncate(nanos: int, unit: int) -> int:
    quotient = abs(nanos) // unit
    return -quotient if nanos < 0 else quotient


_FIELDS: Final[dict[str, Callable[[datetime, int, int], int]]] = {
    "year": lambda moment, years, _: moment.year + years,
    "month": lambda moment, *_: moment.month - 1,
    "day_of_year": lambda moment, *_: moment.timetuple().tm_yday - 1,
    "day_of_month": lambda moment, *_: moment.day - 1,
    "day_of_month_1_based": lambda moment, *_: moment.day,
    "day_of_week": lambda moment, *_: moment.isoweekday() % 7,
    "hours": lambda moment, *_: moment.hour,
    "minutes": lambda moment, *_: moment.minute,
    "seconds": lambda moment, *_: moment.second,
    "milliseconds": lambda _moment, _years, nanos: nanos // 10**6,
}
"""Of a time as `_local` has it, and of its nanoseconds within the second."""


def _accessor(field: Callable[[datetime, int, int], int]) -> Callable[..., int]:
    def access(value: Timestamp, zone: str = "UTC") -> int:
        return field(*_local(value, _zone(zone)), value.nanos % 10**9)

    return access


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "duration_to_hours": lambda value: _truncate(value.nanos, 3600 * 10**9),
    "duration_to_minutes": lambda value: _truncate(value.nanos, 60 * 10**9),
    "duration_to_seconds": lambda value: _truncate(value.nanos, 10**9),
    "duration_to_milliseconds": lambda value: _truncate(value.nanos, 10**6),
}
for _name, _field in _FIELDS.items():
    _suffix = "_tz" if _name == "seconds" else "_with_tz"
    OVERLOADS[f"timestamp_to_{_name}"] = _accessor(_field)
    OVERLOADS[f"timestamp_to_{_name}{_suffix}"] = _accessor(_field)
