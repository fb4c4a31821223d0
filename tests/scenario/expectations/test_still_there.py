"""What is there although it should be gone: the message says what it may wait for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.objects import NoneExpectation

ENDING = {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        ({"metadata": {"name": "p"}}, "p"),
        ({"metadata": ENDING, "spec": {"nodeName": "n"}}, "p (being deleted)"),
        (
            {"metadata": {**ENDING, "finalizers": ["a/b"]}, "spec": {}},
            "p (being deleted, with finalizers a/b)",
        ),
        (
            {"metadata": ENDING, "spec": {"nodeName": "n", "resourceClaims": [{"name": "c"}]}},
            "p (being deleted; a driver that does not unprepare shows in the kubelet's log on n)",
        ),
    ],
    ids=["there", "ending", "finalizers", "claims"],
)
def test_what_is_still_there_is_told_with_what_it_waits_for(pod: Any, found: str) -> None:
    expectation = NoneExpectation.model_validate({"none": {"kind": "Pod"}})
    cluster = SimpleNamespace(find=lambda _selector: [pod], canonical=str)
    seen = expectation.evaluate(cast("Cluster", cluster))
    assert (seen.holds, seen.found) == (False, f"Pod: {found}")
