"""The same seed gives the same operations, and no seed gives too many."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.run.churn_operations import operations
from conformance.scenario.churn import Churn

SLICE = {
    "kind": "ResourceSlice",
    "spec": {
        "devices": [
            {"name": "loose"},
            {"name": "partition", "consumesCounters": [{"counterSet": "gpu", "counters": {}}]},
        ]
    },
}
POD = {"kind": "Pod", "spec": {"resourceClaims": [{"name": "g", "resourceClaimName": "shared"}]}}
CLAIM = {"kind": "ResourceClaim", "metadata": {"name": "shared"}}


def step(**given: Any) -> Churn:
    objects = [SLICE, POD, CLAIM]
    return Churn.model_validate({"time": "5s", "objects": objects, "copies": 2, **given})


def test_a_seed_means_the_same_operations_every_time() -> None:
    assert operations(step(), 7) == operations(step(), 7)
    assert operations(step(), 7) != operations(step(), 8)


def test_longer_churn_begins_like_a_shorter_one() -> None:
    assert operations(step(time="5s"), 7) == operations(step(time="20s"), 7)[:100]


@given(st.integers(1, 10_000))
def test_operations_keep_to_the_rate_and_to_the_number_of_copies(seed: int) -> None:
    dealt = operations(step(), seed)
    assert len(dealt) == 100
    assert sum(operation.pause for operation in dealt) < 10
    there: Counter[tuple[int, int]] = Counter()
    for operation in dealt:
        place = operation.item, operation.copy
        if operation.action == "make":
            there[place] += 1
        elif operation.action == "forceDelete" or operation.item == 2:
            there[place] -= 1
        assert 0 <= there[place] <= 1
        assert operation.copy < 2
        assert all(number < 2 for number in operation.claims)


@given(st.integers(1, 10_000))
def test_what_consumes_counters_is_never_withdrawn_alone(seed: int) -> None:
    withdrawn = {name for o in operations(step(mix={"slices": 100}), seed) for name in o.withdrawn}
    assert withdrawn <= {"loose"}


def test_all_kinds_of_operations_come_up() -> None:
    actions = {operation.action for operation in operations(step(time="30s"), 1)}
    assert actions == {"make", "finish", "delete", "forceDelete", "publish", "remove"}
