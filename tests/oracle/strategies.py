"""The same problems as Hypothesis strategies, for tests that want to shrink by themselves."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.inventories import Json
from tests.oracle.problems import problem


def problems() -> st.SearchStrategy[Json]:
    """Lines for `allocate`."""
    return st.randoms(use_true_random=False).map(lambda random: problem(random, "generated"))
