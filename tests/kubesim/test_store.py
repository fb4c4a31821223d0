from __future__ import annotations

import pytest

from kube.errors import ApiError
from kube.values import Obj
from kubesim.clock import VirtualClock
from kubesim.store import Identity, Store


@pytest.fixture
def store() -> Store:
    return Store(VirtualClock(), Identity(0))


def claim(name: str = "", **meta: object) -> Obj:
    named = {"name": name} if name else {"generateName": "x-"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": "ns", **named, **meta},
    }


def test_new_object_gets_uid_time_version_and_name(store: Store) -> None:
    added = store.add(claim())
    meta = added["metadata"]
    assert meta["name"].startswith("x-")
    assert len(meta["uid"]) == 36
    assert meta["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert meta["resourceVersion"] == "1"
    assert "generation" not in meta
    assert store.by_uid(meta["uid"]) is added


def test_name_can_be_used_once_at_a_time_and_has_a_new_uid_then(store: Store) -> None:
    first = store.add(claim("c"))
    with pytest.raises(ApiError, match="already exists"):
        store.add(claim("c"))
    store.remove(first)
    assert store.by_uid(first["metadata"]["uid"]) is None
    assert store.add(claim("c"))["metadata"]["uid"] != first["metadata"]["uid"]


def test_stored_objects_are_replaced_not_changed(store: Store) -> None:
    before = store.add(claim("c"))
    after = store.modify(before, lambda new: new["metadata"].update(labels={"a": "b"}))
    assert "labels" not in before["metadata"]
    assert after["metadata"]["labels"] == {"a": "b"}
    assert after["metadata"]["resourceVersion"] == "2"


def test_change_that_changes_nothing_leaves_the_version(store: Store) -> None:
    before = store.add(claim("c"))
    assert store.modify(before, lambda new: None) is before
    assert store.revision == 1


def test_changes_are_counted_by_kind(store: Store) -> None:
    store.add(claim("c"))
    assert (store.revision_of_kind("ResourceClaim"), store.revision_of_kind("Pod")) == (1, 0)


def test_clock_stops_at_each_moment_that_was_asked_for() -> None:
    clock = VirtualClock()
    assert clock.next_moment() is None
    clock.wake_in(5)
    clock.wake_in(2)
    assert clock.next_moment() == 2
    clock.advance(3)
    assert clock.next_moment() == 5
    clock.advance(1)
    assert clock.now == 3
    assert clock.format_timestamp() == "2026-01-01T00:00:03Z"


def test_generated_names_are_cut_to_what_a_name_may_have() -> None:
    name = Identity(0).generate_name("Pod", "ns", "a" * 100)
    assert len(name) == 63
