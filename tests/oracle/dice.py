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


@dataclass(frozen=True)
class Dice:
    """Random choices.

    Attributes:
        random: where they come from.
        calm: what is drawn with `rare` or needs a feature that is off is left out.
        small: amounts of capacity are small numbers, so that requests and policies often meet.
        features: those that are on.
    """

    random: Random
    calm: bool = False
    small: bool = False
    features: frozenset[str] = frozenset()

    def one_in(self, times: int) -> bool:
        """True once in so many times."""
        return self.random.randrange(times) == 0

    def rare(self, times: int) -> bool:
        """The same, but never in a calm problem."""
        return not self.calm and self.one_in(times)

    def allowed(self, feature: str, times: int) -> bool:
        """True once in so many times; in a calm problem only where the feature is on."""
        return (not self.calm or feature in self.features) and self.one_in(times)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.random.randrange(len(options))]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        """So many different ones of the options."""
        return self.random.sample(options, count)

    def number(self, below: int) -> int:
        """0 to below - 1."""
        return self.random.randrange(below)

    def shuffle(self, items: list[T]) -> None:
        """Puts the items into another order."""
        self.random.shuffle(items)
