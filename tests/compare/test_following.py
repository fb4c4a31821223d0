"""A snapshot that follows events is the snapshot that is taken afterwards."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from conformance.compare.asking import answer_question
from conformance.compare.evidence import Obj, key_of
from conformance.compare.following import FollowedSnapshot
from conformance.seam.pods import reduced_pod
from conformance.targets.cluster.capture import keep_relevant
from kubesim.store import clone
from reference_allocator.snapshot import Snapshot
from tests.compare.cluster import allocated, claim, node, pod, resource_slice, snapshot
from tests.compare.test_asking import new, waiting
from tests.compare.test_remedies_hold import make_world, take_snapshot

KINDS = ("Node", "ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "Pod")


def event(obj: Obj, kind: str = "MODIFIED") -> Obj:
    return {"type": kind, "object": obj}


def lists_of(item: Snapshot) -> dict[str, list[Any]]:
    """The objects of a snapshot as a capture has them, by name."""
    return {
        field: [reduced(obj) for obj in sorted(value, key=key_of)]
        for field, value in item.to_dict().items()
        if isinstance(value, list)
    }


def reduced(obj: Obj) -> Obj | None:
    return reduced_pod(obj, ()) if obj["kind"] == "Pod" else keep_relevant(obj)


@pytest.mark.parametrize("seed", range(20))
def test_events_lead_to_the_snapshot_that_is_taken_afterwards(seed: int) -> None:
    """Two clusters of which each object of one is changed to, or gone from, the other."""
    first, second = (make_world(random.Random(f"{name}-{seed}")) for name in ("before", "after"))
    followed = FollowedSnapshot(take_snapshot(first))
    was, now = (
        {(kind, *key_of(item)): item for kind in KINDS for item in world.cluster.store.all(kind)}
        for world in (first, second)
    )
    events = [event(item) for item in now.values()]
    events += [event(item, "DELETED") for key, item in was.items() if key not in now]
    random.Random(seed).shuffle(events)
    followed.apply(clone({"events": events})["events"])
    assert lists_of(followed.snapshot) == lists_of(take_snapshot(second))


def test_a_question_is_about_what_was_told_before_it() -> None:
    followed = FollowedSnapshot(Snapshot.from_dict(waiting()))

    def ask(line: Obj) -> Obj:
        answer: Obj = json.loads(answer_question(followed, json.dumps(line).encode()))
        return answer

    fits = [ask({"id": "1"})["pods"][0]["fits"]]
    for events in (
        [event(item, "ADDED") for item in new(2)],
        [event(node("new"), "DELETED")],
        [event(allocated("held", "gpu-0"), "DELETED"), {"type": "BOOKMARK", "object": {}}],
    ):
        told = ask({"id": "e", "events": events})
        assert told == {"id": "e", "changed": sum(item["type"] != "BOOKMARK" for item in events)}
        fits.append(ask({"id": "2"})["pods"][0]["fits"])
    assert fits == [[], ["new"], [], ["node-a"]]


def test_pods_that_have_ended_or_want_no_device_are_not_kept() -> None:
    followed = FollowedSnapshot(Snapshot.from_dict(waiting()))
    [wants] = followed.snapshot.pods
    others = [pod(f"other-{number}") for number in range(9)]
    followed.apply([event(item, "ADDED") for item in others])
    assert followed.snapshot.pods == (wants,)
    followed.apply([event({**wants, "status": {"phase": "Succeeded"}})])
    assert not followed.snapshot.pods


def test_an_event_that_changes_nothing_is_not_counted() -> None:
    followed = FollowedSnapshot(Snapshot.from_dict(snapshot()))
    before = followed.snapshot
    assert followed.apply([event(node("stranger"), "DELETED"), event(pod("plain"), "ADDED")]) == 0
    assert followed.snapshot is before
    assert followed.apply([event(node("n"), "ADDED")] * 2) == 1


@pytest.mark.parametrize("kind", ["ResourceClaimTemplate", "ResourceClaim", "ResourceSlice"])
def test_what_is_gone_needs_no_more_than_its_name(kind: str) -> None:
    templates = {"kind": "ResourceClaimTemplate", "spec": {"spec": claim("c")["spec"]}}
    whole = {
        "ResourceClaim": claim("x"),
        "ResourceSlice": resource_slice("x"),
        "ResourceClaimTemplate": {**claim("x"), **templates},
    }[kind]
    followed = FollowedSnapshot(Snapshot.from_dict(snapshot()))
    before = lists_of(followed.snapshot)
    assert followed.apply([event(whole, "ADDED")]) == 1
    fields = ("apiVersion", "kind", "metadata")
    assert followed.apply([event({name: whole[name] for name in fields}, "DELETED")]) == 1
    assert lists_of(followed.snapshot) == before


@pytest.mark.parametrize(
    ("identifier", "repeated"), [(7, 7), ("7", "7"), (True, ""), (1.5, ""), ([7], "")]
)
def test_an_id_that_is_a_text_or_an_integer_is_repeated(identifier: Any, repeated: Any) -> None:
    followed = FollowedSnapshot(Snapshot.from_dict(snapshot()))
    line = json.dumps({"id": identifier, "events": []}).encode()
    answer = json.loads(answer_question(followed, line))
    assert answer["id"] == repeated
    assert ("invalid" in answer) == (repeated == "")


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ("x", "events"),
        ([{"type": "ADDED"}], "events[0].object"),
        ([{"type": "CHANGED", "object": node("n")}], "expected one of ADDED, MODIFIED"),
        ([event({"kind": "Secret"})], "Secret is not followed; Node, ResourceSlice"),
        ([event({**node("n"), "apiVersion": "v2"})], "its apiVersion is v2, not v1"),
        ([event({**claim("c"), "metadata": {}})], "events[0].object.metadata.name"),
        ([event({**claim("c"), "spec": 1})], "events[0].object"),
        ([event(resource_slice("m")), event({**resource_slice("n"), "spec": {}})], "events[1]"),
    ],
)
def test_events_that_cannot_be_used_change_nothing(events: Any, reason: str) -> None:
    followed = FollowedSnapshot(Snapshot.from_dict(snapshot()))
    before = followed.snapshot
    line = json.dumps({"id": "1", "events": events}).encode()
    assert reason in json.loads(answer_question(followed, line))["invalid"]
    assert followed.snapshot is before
