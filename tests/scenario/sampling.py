"""A sample that is another one each day, so that in time everything is looked at."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Sequence
from typing import Final, TypeVar

_T = TypeVar("_T")

_DAY: Final = dt.datetime.now(dt.UTC).toordinal()
SEED: Final = os.environ.get("DRA_SAMPLE") or str(_DAY)
SAMPLE: Final = f"sampled with DRA_SAMPLE={SEED}"
"""For the message of a failure: how to have the same sample again."""


def sample(items: Sequence[_T], size: int, what: str) -> list[_T]:
    """Some of the items, at most ``size``; others for another ``what``, day or DRA_SAMPLE."""
    chosen = random.Random(f"{SEED} {what}")
    return chosen.sample(items, min(size, len(items)))
