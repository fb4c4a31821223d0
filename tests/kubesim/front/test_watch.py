"""Watches over HTTP: what is replayed, what comes later, and how they end."""

from __future__ import annotations

import json
import threading

import pytest

from kube.errors import ApiError
from kubesim.clock import VirtualClock
from kubesim.front.backend import FellBehindError, History
from kubesim.front.server import Front
from kubesim.store import Identity, Store
from tests.kubesim.front.conftest import CLAIMS, Client, claim


def _name(obj: dict[str, dict[str, str]]) -> str:
    return obj["metadata"]["name"]


def test_a_watch_without_a_version_begins_with_what_there_is(client: Client) -> None:
    client.send("POST", CLAIMS, claim("one"))
    events = client.stream(f"{CLAIMS}?watch=1")
    assert [(kind, _name(obj)) for kind, obj in [next(events)]] == [("ADDED", "one")]
    client.send("POST", CLAIMS, claim("two"))
    assert [(kind, _name(obj)) for kind, obj in [next(events)]] == [("ADDED", "two")]


def test_a_watch_replays_what_was_since_a_version(client: Client) -> None:
    version = client.send("POST", CLAIMS, claim("one")).json()["metadata"]["resourceVersion"]
    client.send("POST", CLAIMS, claim("two", x="1"))
    client.send("DELETE", f"{CLAIMS}/one")
    events = client.stream(f"{CLAIMS}?watch=true&resourceVersion={version}")
    found = [next(events) for _ in range(2)]
    assert [(kind, _name(obj)) for kind, obj in found] == [("ADDED", "two"), ("DELETED", "one")]


@pytest.mark.parametrize(
    ("parameter", "type_of_first"),
    [("watch", "ADDED"), ("watch=True", "ADDED"), ("watch=0", None), ("watch=False", None)],
)
def test_a_flag_is_read_as_go_reads_it(
    client: Client, parameter: str, type_of_first: str | None
) -> None:
    client.send("POST", CLAIMS, claim("one"))
    answer = client.send("GET", f"{CLAIMS}?{parameter}&timeoutSeconds=0").json()
    assert answer.get("type") == type_of_first


def test_what_leaves_the_selection_is_deleted_for_the_watch(client: Client) -> None:
    client.send("POST", CLAIMS, claim("one", x="1"))
    events = client.stream(f"{CLAIMS}?watch=1&labelSelector=x")
    assert next(events)[0] == "ADDED"
    patch = {"metadata": {"labels": {"x": None}}}
    merge = "application/merge-patch+json"
    client.send("PATCH", f"{CLAIMS}/one", patch, content_type=merge)
    kind, obj = next(events)
    assert (kind, obj["metadata"]["labels"]) == ("DELETED", {"x": "1"})


def test_initial_events_end_with_a_bookmark(client: Client) -> None:
    client.send("POST", CLAIMS, claim("one"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    events = list(client.stream(f"{CLAIMS}?{query}&allowWatchBookmarks=true"))
    assert [kind for kind, _ in events] == ["ADDED", "BOOKMARK", "BOOKMARK"]
    first, last = (obj["metadata"] for _, obj in events[1:])
    assert first["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert "annotations" not in last


def test_a_bookmark_in_a_table_is_a_row_without_a_name(client: Client) -> None:
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    path = f"{CLAIMS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=0"
    first, *_ = client.send("GET", path, accept=table).data.splitlines()
    (row,) = json.loads(first)["object"]["rows"]
    assert row["cells"] == ["", "pending", "<unknown>"]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_in_lists_of_metadata_ends_without_an_event(client: Client) -> None:
    client.send("POST", CLAIMS, claim("one"))
    listed = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    answer = client.send("GET", f"{CLAIMS}?watch=1", accept=listed)
    assert (answer.status, answer.data) == (200, b"")


def test_a_watch_ends_in_order_when_the_server_does(front: Front, client: Client) -> None:
    events = client.stream(f"{CLAIMS}?watch=1")
    client.send("POST", CLAIMS, claim("one"))
    next(events)
    ending = threading.Thread(target=front.close)
    ending.start()
    assert list(events) == []  # the last chunk came: else this raises
    ending.join()


def test_a_version_that_is_forgotten_is_gone(front: Front, client: Client) -> None:
    history = front.backend.history
    history._capacity = 1
    for name in "abcd":
        version = client.send("POST", CLAIMS, claim(name)).json()["metadata"]["resourceVersion"]
    [(kind, status)] = client.stream(f"{CLAIMS}?watch=1&resourceVersion=1&timeoutSeconds=0")
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert not list(client.stream(f"{CLAIMS}?watch=1&resourceVersion={version}&timeoutSeconds=0"))


def test_history_keeps_the_newest_events() -> None:
    store = Store(VirtualClock(), Identity(0))
    history = History(store, threading.RLock(), capacity=2)
    namespace = {"apiVersion": "v1", "kind": "Namespace"}
    stored = [store.add({**namespace, "metadata": {"name": name}}) for name in "abc"]
    versions = [int(one["metadata"]["resourceVersion"]) for one in stored]
    start = history.find_position(0)
    assert [event.revision for event in history.read_events(start)] == versions
    stored += [store.add({**namespace, "metadata": {"name": name}}) for name in "de"]
    with pytest.raises(FellBehindError):
        history.read_events(start)
    with pytest.raises(ApiError, match=r"too old resource version: 0 \(2\)") as refused:
        history.find_position(0)
    assert refused.value.code == 410
    store.remove(stored[0])
    [event] = history.read_events(history.find_position(store.revision - 1))
    assert (event.type, event.old) == ("DELETED", stored[0])
