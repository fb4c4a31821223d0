"""Reading the claims of one call, within the time that the kubelet waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from nvml_driver.errors import PrepareError
from nvml_driver.prepare.claims import BUDGET_SECONDS, ClaimFetcher, limit_seconds


@dataclass
class Reference:
    name: str
    uid: str
    namespace: str = "default"


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """Set at the end, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


def claim(uid: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid}}


def test_a_slow_claim_costs_only_itself(hang: threading.Event) -> None:
    def get(_namespace: str, name: str) -> Mapping[str, Any]:
        if name.startswith("slow"):
            hang.wait(20)
        return claim(name)

    fetcher = ClaimFetcher(get)
    asked = [Reference(name, name) for name in ("slow-1", "a", "slow-2", "b", "c")]
    found = {ref.uid: outcome for ref, outcome in fetcher.fetch(asked, 0.5)}
    fetcher.stop()
    assert set(found) == {"slow-1", "a", "slow-2", "b", "c"}
    assert {uid for uid, outcome in found.items() if not isinstance(outcome, PrepareError)} == set(
        "abc"
    )
    for uid in ("slow-1", "slow-2"):
        assert "was not read and prepared within 0 s" in str(found[uid])


def test_claims_are_read_at_the_same_time() -> None:
    together = threading.Barrier(4)

    def get(_namespace: str, name: str) -> Mapping[str, Any]:
        together.wait(10)  # returns only if all four are being read
        return claim(name)

    fetcher = ClaimFetcher(get)
    asked = [Reference(name, name) for name in "abcd"]
    assert [o for _, o in fetcher.fetch(asked, 10) if isinstance(o, PrepareError)] == []
    fetcher.stop()


def test_preparing_may_use_the_time_up_too() -> None:
    fetcher = ClaimFetcher(lambda _namespace, name: claim(name))
    asked = [Reference(name, name) for name in "abc"]
    outcomes = []
    for _, outcome in fetcher.fetch(asked, 0.2):
        outcomes.append(outcome)
        if len(outcomes) == 1:
            threading.Event().wait(0.3)  # a preparation that takes longer than the call may
    fetcher.stop()
    assert not isinstance(outcomes[0], PrepareError)
    assert len(outcomes) == 3
    assert isinstance(outcomes[-1], PrepareError)


@pytest.mark.parametrize(
    ("remaining", "seconds"),
    [
        (None, BUDGET_SECONDS),
        (45.0, BUDGET_SECONDS),
        (10.0, 7.0),
        (1.0, 0.0),
        (1e9, BUDGET_SECONDS),
    ],
)
def test_the_budget_is_below_what_the_caller_waits(remaining: float | None, seconds: float) -> None:
    assert limit_seconds(remaining) == seconds
