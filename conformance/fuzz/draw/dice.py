"""Where generated problems get their choices from.

A problem is drawn from a `random.Random`, so that a seed names it, and Hypothesis can stand in for
the generator where it shrinks. A calm problem leaves out what mostly ends in an error at once:
half of all problems have to get past the first checks, or the search is never tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

T = TypeVar("T")

GATED = (
    "adminAccess",
    "compatibilityGroups",
    "consumableCapacity",
    "derivedAttributes",
    "deviceBindingAndStatus",
    "deviceTaintRules",
    "deviceTaints",
    "extendedResource",
    "listTypeAttributes",
    "partitionableDevices",
    "prioritizedList",
)
"""What a problem can be about only where gates are on; most are fields of `Features`."""

FOCUS = (
    *GATED,
    "all",
    "claims",
    "config",
    "constraints",
    "inUse",
    "nodes",
    "pods",
    "selectors",
    "updating",
)
"""What a problem can be about."""


@dataclass(frozen=True)
class Dice:
    """Random choices.

    Attributes:
        random: where they come from.
        calm: what is drawn with `rare` or needs a feature that is off is left out.
        small: amounts of capacity are small numbers, so that requests and policies often meet.
        features: those that are on.
        focus: what the problem is about (`FOCUS`); everything else is left out. None: no focus.
    """

    random: Random
    calm: bool = False
    small: bool = False
    features: frozenset[str] = frozenset()
    focus: frozenset[str] | None = None

    def one_in(self, times: int) -> bool:
        """Return True once in so many times."""
        return self.random.randrange(times) == 0

    def rare(self, times: int) -> bool:
        """Return True once in so many times, but never in a calm problem."""
        return not self.calm and self.one_in(times)

    def allowed(self, feature: str, times: int) -> bool:
        """Return True once in so many times; in a calm problem only where the feature is on."""
        return (not self.calm or feature in self.features) and self.about(feature, times)

    def about(self, feature: str, times: int) -> bool:
        """Return True once in so many times; with a focus every other time, and for that alone."""
        if self.focus is None:
            return self.one_in(times)
        return feature in self.focus and self.one_in(2)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.random.randrange(len(options))]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        """Return so many different ones of the options."""
        return self.random.sample(options, count)

    def number(self, below: int) -> int:
        """Return a number from 0 to ``below`` - 1."""
        return self.random.randrange(below)

    def shuffle(self, items: list[T]) -> None:
        """Put the items into another order."""
        self.random.shuffle(items)
