"""A pod that waits is not disturbed by a pool of somebody else that cannot be used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.objects import NoneExpectation
from conformance.scenario.expectations.pod import PodExpectation

UNIQUE = "4a78d4b6"
ERROR = (
    'running "DynamicResources" filter plugin: claim dra-4a78d4b6/all, request gpu: asks for all'
    " devices, but resource pool {pool} is currently being updated"
)


def seen(reason: str, message: str, wanted: str = "Unschedulable") -> tuple[bool, object]:
    """Of a pod that waits for this: whether it is as wanted, and what the comparison sees."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    pod = {"spec": {}, "status": {"phase": "Pending", "conditions": [condition]}}
    cluster = SimpleNamespace(
        find=lambda _: [pod], make_canonical=lambda text: text.replace(UNIQUE, "*")
    )
    expectation = PodExpectation.model_validate({"pod": "p", "pending": {"reason": wanted}})
    found = expectation.evaluate(cast("Cluster", cluster))
    return found.holds, found.observed["pending"]


OTHERS = ERROR.format(pool="d-bf0436c1.dra-conformance.dev/dra-a-bf0436c1")
OWN = ERROR.format(pool="d-4a78d4b6.dra-conformance.dev/dra-a-4a78d4b6")
INVALID = 'running "DynamicResources" filter plugin: pool {pool} is invalid: duplicate device name'
"""Of 1.34, whatever devices the claim asks for."""


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("Unschedulable", "0/1 nodes are available", (True, "Unschedulable")),
        ("SchedulerError", OTHERS, (True, "Unschedulable")),
        ("SchedulerError", OWN, (False, "SchedulerError")),
        ("SchedulerError", INVALID.format(pool="dra-a-bf0436c1"), (True, "Unschedulable")),
        ("SchedulerError", INVALID.format(pool="dra-a-4a78d4b6"), (False, "SchedulerError")),
        ("SchedulerError", "CEL runtime error", (False, "SchedulerError")),
    ],
)
def test_only_what_others_do_to_their_pools_is_borne(
    reason: str, message: str, expected: tuple[bool, str]
) -> None:
    assert seen(reason, message) == expected


def test_who_expects_an_error_gets_no_other() -> None:
    assert not seen("Unschedulable", OTHERS, "SchedulerError")[0]


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
    cluster = SimpleNamespace(find=lambda _selector: [pod], make_canonical=str)
    seen = expectation.evaluate(cast("Cluster", cluster))
    assert (seen.holds, seen.finding) == (False, f"Pod: {found}")
