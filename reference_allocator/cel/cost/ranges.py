"""Ranges of sizes and costs, saturating at 64 bits as in Go."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MAX: Final = 2**64 - 1
STRING_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40


def scaled(value: int, factor: float) -> int:
    """The value times a factor, rounded up."""
    if value > 0 and factor > 0 and float(value) > float(MAX) / factor:
        return MAX
    return min(math.ceil(float(value) * factor), MAX)


class Range(NamedTuple):
    """From ``low`` to ``high``, both included."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        """The sum."""
        return Range(min(self.low + other.low, MAX), min(self.high + other.high, MAX))

    def times(self, other: Range) -> Range:
        """The product."""
        return Range(min(self.low * other.low, MAX), min(self.high * other.high, MAX))

    def scaled(self, factor: float) -> Range:
        """Both ends times a factor, rounded up."""
        return Range(scaled(self.low, factor), scaled(self.high, factor))

    def union(self, other: Range) -> Range:
        """The smallest range that covers both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def fixed(value: int) -> Range:
    """Exactly the value."""
    return Range(value, value)


UNKNOWN: Final = Range(0, MAX)
