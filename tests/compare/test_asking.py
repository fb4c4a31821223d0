"""What if, line by line: each line is answered, whatever is in it, and none changes the next."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.compare.asking import answer_question
from conformance.compare.evidence import Obj
from conformance.compare.following import FollowedSnapshot
from reference_allocator.snapshot import Snapshot
from tests.compare.cluster import allocated, claim, node, pod, resource_slice, snapshot


def waiting() -> Obj:
    """A pod that needs two devices where one is free, on node-a."""
    wants = pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "two"}])
    holder = allocated("held", "gpu-0")
    holder["status"]["reservedFor"] = [{"resource": "pods", "name": "h", "uid": "u"}]
    return snapshot(claims=(claim("two", 2),), allocated=(holder,), pods=(wants,))


def new(devices: int) -> list[Obj]:
    return [node("new"), resource_slice("new", ["40Gi"] * devices)]


def asked(line: Any) -> Any:
    text = line if isinstance(line, bytes) else json.dumps(line).encode()
    return json.loads(answer_question(FollowedSnapshot(Snapshot.from_dict(waiting())), text))


@pytest.mark.parametrize(
    ("question", "fits"),
    [
        ({}, []),
        ({"pod": "ns/p", "add": new(2)}, ["new"]),
        ({"add": new(1)}, []),
        ({"end": ["ns/h"]}, ["node-a"]),
        ({"end": ["ns/h"], "cordon": ["node-a"]}, []),
    ],
)
def test_each_question_is_answered(question: Obj, fits: list[str]) -> None:
    [told] = asked({"id": "7", **question})["pods"]
    assert (told["pod"], told["fits"]) == ("ns/p", fits)
    if question.get("add"):  # of the nodes that are added alone
        assert {name for item in told["reasons"] for name in item["nodes"]} <= {"new"}


def test_what_waits_is_asked_about_where_a_snapshot_knows_no_pods() -> None:
    unknown = Snapshot.from_dict(snapshot(claims=(claim("two", 2),)))
    line = json.dumps({"id": "1", "add": new(2)}).encode()
    [told] = json.loads(answer_question(FollowedSnapshot(unknown), line))["pods"]
    assert told["fits"] == ["new"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"[]", "expected"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        ({"id": "1", "Pod": "ns/p"}, "Pod"),
        ({"id": "1", "pod": "ns/none"}, "there is no ResourceClaim"),
        ({"id": "1", "add": [{"kind": "Secret"}]}, "give Nodes and ResourceSlices only"),
        ({"id": "1", "add": [{**resource_slice("new"), "spec": {}}]}, "add[0].spec"),
        ({"id": "1", "add": ["x"]}, "add[0]"),
        ({"id": "1", "cordon": [1]}, "cordon[0]"),
        ({"id": "1", "cordon": ["none"]}, "no such node"),
        ({"id": "1", "end": ["ns/none"]}, "no such pod"),
    ],
)
def test_a_line_that_cannot_be_answered_says_why(line: Any, reason: str) -> None:
    assert reason in asked(line)["invalid"]
