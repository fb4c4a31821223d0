"""Times in result files: RFC 3339, with a time zone, so that two of them can be compared."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII
)
"""``fromisoformat`` takes more than that: dates alone, weeks, times without a zone."""


def parse_time(text: str) -> datetime:
    """Return the moment that an RFC 3339 time names. Raises ValueError: the text is none."""
    if not _RFC3339.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a time like 2026-01-31T12:00:00+00:00")
    return datetime.fromisoformat(text)


def seconds_between(began: str, ended: str) -> float:
    """Return the seconds between two times; 0 if one is no time, or the second is the earlier."""
    try:
        return max(0.0, (parse_time(ended) - parse_time(began)).total_seconds())
    except ValueError:
        return 0.0


def end_of(began: str, seconds: float) -> datetime:
    """Return when something ended that took so many seconds. Raises ValueError: that is no time."""
    try:
        return parse_time(began) + timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"{seconds:g} s after {began} is no time") from None


def rounded_up(moment: datetime) -> str:
    """Return a moment as the footer writes it, in whole seconds, none of them before it."""
    whole = moment.replace(microsecond=0) + timedelta(seconds=bool(moment.microsecond))
    return whole.astimezone(UTC).isoformat(timespec="seconds")
