"""The order into which Go's ``sort.Slice`` brings items whose keys are equal or have no order.

Up to twelve items are sorted by insertion and keep their order; beyond that Go uses a
pattern-defeating quicksort (Orson Peters, arXiv:2106.05123), which is not stable but deterministic.
Which of several devices' values comes first in ``sortBy`` depends on every swap of it, so the steps
here are those of Go's ``sort/zsortfunc.go``.
"""

from __future__ import annotations

from typing import Any, Final

_INSERTION: Final = 12
_NINTHER: Final = 50
"""From this length on the pivot is a median of medians, and a few swaps may finish the sort."""
_DESCENDING: Final = 12
"""All comparisons of four medians of three were the wrong way round."""
_REPAIRS: Final = 5
_MASK: Final = 2**64 - 1


def sort_like_go(keys: list[Any], items: list[Any]) -> list[Any]:
    """The items in the order of their keys.

    Args:
        keys: of one class, whose ``<`` is the order; a NaN is less than nothing.
        items: as many as keys.
    """
    sorting = _Sorting(list(zip(keys, items, strict=True)))
    sorting.quicksort(0, len(items), len(items).bit_length())
    return [item for _, item in sorting.data]


class _Sorting:
    """One sort; ``data`` holds (key, item), and a range is from ``start`` up to before ``end``."""

    def __init__(self, data: list[tuple[Any, Any]]) -> None:
        self.data = data

    def less(self, first: int, second: int) -> bool:
        return bool(self.data[first][0] < self.data[second][0])

    def swap(self, first: int, second: int) -> None:
        data = self.data
        data[first], data[second] = data[second], data[first]

    def quicksort(self, start: int, end: int, limit: int) -> None:
        """Sort a range; after ``limit`` unbalanced partitions by heap."""
        balanced = partitioned = True
        while True:
            length = end - start
            if length <= _INSERTION:
                self._insert(start, end)
                return
            if limit == 0:
                self._heapsort(start, end)
                return
            if not balanced:
                self._scatter(start, end)
                limit -= 1
            pivot, swaps = self._pivot(start, end)
            if swaps == _DESCENDING:
                self.data[start:end] = self.data[start:end][::-1]
                pivot = (end - 1) - (pivot - start)
                swaps = 0
            if balanced and partitioned and swaps == 0 and self._repair(start, end):
                return
            if start > 0 and not self.less(start - 1, pivot):
                start = self._partition_equal(start, end, pivot)
                continue
            middle, partitioned = self._partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.quicksort(start, middle, limit)
                start = middle + 1
            else:
                self.quicksort(middle + 1, end, limit)
                end = middle

    def _insert(self, start: int, end: int) -> None:
        for index in range(start + 1, end):
            while index > start and self.less(index, index - 1):
                self.swap(index, index - 1)
                index -= 1

    def _heapsort(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(start, root, length)
        for last in range(length - 1, -1, -1):
            self.swap(start, start + last)
            self._sift_down(start, 0, last)

    def _sift_down(self, start: int, root: int, length: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self.less(start + child, start + child + 1):
                child += 1
            if not self.less(start + root, start + child):
                return
            self.swap(start + root, start + child)
            root = child

    def _scatter(self, start: int, end: int) -> None:
        """Three swaps that break a pattern of bad pivots; the length seeds them (xorshift)."""
        length = state = end - start
        mask = (1 << length.bit_length()) - 1
        place = start + (length // 4) * 2 - 1
        for index in range(place, place + 3):
            state ^= (state << 13) & _MASK
            state ^= state >> 7
            state ^= (state << 17) & _MASK
            other = state & mask
            self.swap(index, start + (other - length if other >= length else other))

    def _pivot(self, start: int, end: int) -> tuple[int, int]:
        """Where the pivot is, and how many of the comparisons for it were the wrong way round."""
        quarter = (end - start) // 4
        places = [start + quarter, start + quarter * 2, start + quarter * 3]
        swaps = 0
        if end - start >= _NINTHER:
            for index, place in enumerate(places):
                places[index], more = self._median(place - 1, place, place + 1)
                swaps += more
        pivot, more = self._median(*places)
        return pivot, swaps + more

    def _median(self, low: int, middle: int, high: int) -> tuple[int, int]:
        swaps = 0
        if self.less(middle, low):
            low, middle, swaps = middle, low, swaps + 1
        if self.less(high, middle):
            middle, high, swaps = high, middle, swaps + 1
        if self.less(middle, low):
            low, middle, swaps = middle, low, swaps + 1
        return middle, swaps

    def _repair(self, start: int, end: int) -> bool:
        """Whether the range is sorted, after at most a few swaps of neighbours in a long one."""
        index = start + 1
        for _ in range(_REPAIRS):
            while index < end and not self.less(index, index - 1):
                index += 1
            if index == end:
                return True
            if end - start < _NINTHER:
                return False
            self.swap(index, index - 1)
            if index - start >= 2:
                for left in range(index - 1, 0, -1):  # as Go: down to the start of all data
                    if not self.less(left, left - 1):
                        break
                    self.swap(left, left - 1)
            if end - index >= 2:
                for right in range(index + 1, end):
                    if not self.less(right, right - 1):
                        break
                    self.swap(right, right - 1)
        return False

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Smaller ones before the pivot's new place; whether they were there already."""
        self.swap(start, pivot)
        left, right = start + 1, end - 1
        swapped = False
        while True:
            while left <= right and self.less(left, start):
                left += 1
            while left <= right and not self.less(right, start):
                right -= 1
            if left > right:
                self.swap(right, start)
                return right, not swapped
            self.swap(left, right)
            swapped = True
            left, right = left + 1, right - 1

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Where those begin that are greater than the pivot, which is the smallest."""
        self.swap(start, pivot)
        left, right = start + 1, end - 1
        while True:
            while left <= right and not self.less(start, left):
                left += 1
            while left <= right and self.less(start, right):
                right -= 1
            if left > right:
                return left
            self.swap(left, right)
            left, right = left + 1, right - 1
