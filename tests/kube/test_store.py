from __future__ import annotations

from typing import Any

from kube.store import Store, version_of


def obj(name: str, version: int, uid: str = "u", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "demo",
            "uid": uid,
            "resourceVersion": str(version),
            "labels": labels,
        }
    }


def test_an_older_state_never_replaces_a_newer_one_and_versions_are_numbers() -> None:
    store = Store()
    assert [store.put(obj("a", version)) for version in (9, 12, 10)] == [True, True, False]
    assert [version_of(found) for found in store.list()] == [12]


def test_a_late_change_does_not_bring_back_what_was_removed() -> None:
    store = Store()
    store.put(obj("a", 5))
    assert store.remove(obj("a", 5))
    assert not store.put(obj("a", 6))
    assert store.get("demo", "a") is None


def test_a_late_deletion_does_not_take_the_new_object_of_that_name() -> None:
    store = Store()
    store.put(obj("a", 5, uid="first"))
    store.put(obj("a", 9, uid="second"))
    assert not store.remove(obj("a", 7, uid="first"))
    assert store.get("demo", "a") is not None


def test_a_list_takes_away_what_is_not_in_it_but_nothing_that_is_newer() -> None:
    store = Store()
    store.put(obj("old", 3, uid="1"))
    store.put(obj("mine", 20, uid="2"))
    store.put(obj("both", 20, uid="3"))
    store.replace([obj("both", 8, uid="3"), obj("new", 9, uid="4")], version=10)
    assert [o["metadata"]["name"] for o in store.list()] == ["both", "mine", "new"]
    both = store.get("demo", "both")
    assert both is not None
    assert version_of(both) == 20


def test_listing_selects_by_all_labels() -> None:
    store = Store()
    store.put(obj("a", 1, uid="1", app="x", tier="y"))
    store.put(obj("b", 2, uid="2", app="x"))
    assert [o["metadata"]["name"] for o in store.list({"app": "x", "tier": "y"})] == ["a"]
    assert len(store.list({"app": "x"})) == 2
    assert store.list({"app": "other"}) == []
