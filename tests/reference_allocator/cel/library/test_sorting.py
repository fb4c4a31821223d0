"""Sorting as Go's ``sort.Slice``: sorted in any case, and equal keys in Go's order.

Which order that is comes from Go itself: ``sort.Slice`` of the indices by these keys.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_allocator.cel.library.sorting import _Sorting, sort_like_go


@given(st.lists(st.integers(0, 30), max_size=200))
def test_items_are_in_the_order_of_their_keys(keys: list[int]) -> None:
    assert sort_like_go(keys, keys) == sorted(keys)


@given(st.lists(st.integers(0, 3), max_size=12))
def test_up_to_twelve_items_keep_their_order(keys: list[int]) -> None:
    places = list(range(len(keys)))
    assert sort_like_go(keys, places) == sorted(places, key=keys.__getitem__)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([place % 2 for place in range(13)], [8, 12, 2, 0, 4, 10, 6, 3, 7, 9, 5, 11, 1]),
        (
            [place % 3 for place in range(16)],
            [6, 15, 12, 3, 0, 9, 4, 7, 10, 13, 1, 8, 5, 11, 2, 14],
        ),
    ],
)
def test_more_items_with_equal_keys_come_in_the_order_of_go(
    keys: list[int], expected: list[int]
) -> None:
    assert sort_like_go(keys, list(range(len(keys)))) == expected


def test_what_has_no_order_stays_where_it_is() -> None:
    assert sort_like_go([math.nan] * 3, ["b", "a", "c"]) == ["b", "a", "c"]


@given(st.lists(st.integers(0, 9), max_size=60))
def test_bad_pivots_end_in_a_heap_sort(keys: list[int]) -> None:
    sorting = _Sorting([(key, key) for key in keys])
    sorting.quicksort(0, len(keys), 0)
    assert [key for key, _ in sorting.data] == sorted(keys)
