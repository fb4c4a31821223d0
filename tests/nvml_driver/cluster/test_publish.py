"""Slices in the API server become, and stay, what the driver publishes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nvml_driver.cluster.kube import KubeClient
from nvml_driver.cluster.publish import Publisher, plan_changes
from nvml_driver.errors import KubeError
from tests.nvml_driver.stub_api import SLICES, StubApi

OWNER = {
    "apiVersion": "v1",
    "kind": "Node",
    "name": "node-a",
    "uid": "node-uid",
    "controller": True,
}


class Devices:
    """What is to be published: device names of each slice."""

    def __init__(self, *names: list[str]) -> None:
        self.names = names

    def __call__(self, generation: int) -> list[dict[str, Any]]:
        count = len(self.names)
        pool = {"name": "node-a", "generation": generation, "resourceSliceCount": count}
        return [
            {
                "metadata": {"name": f"s{index}"},
                "spec": {
                    "driver": "d.io",
                    "nodeName": "node-a",
                    "pool": pool,
                    "devices": [{"name": name} for name in names],
                },
            }
            for index, names in enumerate(self.names)
        ]


def stored(slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**body, "metadata": {**body["metadata"], "resourceVersion": f"rv{index}"}}
        for index, body in enumerate(slices)
    ]


def names(bodies: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(b["metadata"]["name"], b["spec"]["pool"]["generation"]) for b in bodies]


def test_an_empty_server_gets_all_slices_of_the_first_generation() -> None:
    changes = plan_changes([], Devices(["a"], ["b"]))
    assert names(changes.create) == [("s0", 1), ("s1", 1)]
    assert (changes.replace, changes.delete) == ([], [])


def test_what_is_right_is_left_alone() -> None:
    devices = Devices(["a"], ["b"])
    assert not plan_changes(stored(devices(4)), devices)


def test_a_missing_slice_comes_back_in_the_generation_of_the_others() -> None:
    devices = Devices(["a"], ["b"])
    changes = plan_changes(stored(devices(4))[1:], devices)
    assert names(changes.create) == [("s0", 4)]
    assert (changes.replace, changes.delete) == ([], [])


def test_any_difference_makes_a_new_generation_of_all() -> None:
    devices = Devices(["a"], ["b"])
    existing = stored(devices(4))
    existing[0]["spec"] = {**existing[0]["spec"], "devices": []}
    changes = plan_changes(existing, devices)
    assert names(changes.replace) == [("s0", 5), ("s1", 5)]
    assert [body["metadata"]["resourceVersion"] for body in changes.replace] == ["rv0", "rv1"]


def test_a_shrinking_inventory_replaces_before_it_deletes() -> None:
    changes = plan_changes(stored(Devices(["a"], ["b"])(2)), Devices(["a"]))
    assert names(changes.replace) == [("s0", 3)]
    assert changes.delete == ["s1"]
    assert changes.replace[0]["spec"]["pool"]["resourceSliceCount"] == 1


def test_a_lost_owner_is_a_difference() -> None:
    def owned(generation: int) -> list[dict[str, Any]]:
        [body] = Devices(["a"])(generation)
        body["metadata"]["ownerReferences"] = [OWNER]
        return [body]

    assert names(plan_changes(stored(Devices(["a"])(1)), owned).replace) == [("s0", 2)]


def test_a_generation_is_never_used_again() -> None:
    assert names(plan_changes([], Devices(["a"]), at_least=3).create) == [("s0", 3)]


@pytest.fixture
def publisher(api: StubApi, tmp_path: Path) -> Iterator[Publisher]:
    client = KubeClient.connect(api.kubeconfig(tmp_path))
    running = Publisher(client, Devices(["a"], ["b"]), driver_name="d.io", node_name="node-a")
    running.start()
    yield running
    running.stop()


def published(api: StubApi) -> bool:
    return [len(body["spec"]["devices"]) for body in api.slices()] == [1, 1]


def test_slices_are_published_owned_by_the_node_and_stay_at_stop(
    api: StubApi, publisher: Publisher
) -> None:
    assert publisher.published.wait(10)
    assert [body["metadata"]["ownerReferences"] for body in api.slices()] == [[OWNER], [OWNER]]
    writes = [request for request in api.requests if request[0] != "GET"]
    assert writes == [("POST", SLICES)] * 2
    publisher.stop()
    assert not publisher._thread.is_alive()
    assert published(api)


def test_deleted_slices_come_back(api: StubApi, publisher: Publisher) -> None:
    assert publisher.published.wait(10)
    old = api.get(f"{SLICES}/s1")["metadata"]["uid"]
    api.delete(f"{SLICES}/s1")
    api.wait(lambda api: published(api) and api.get(f"{SLICES}/s1")["metadata"]["uid"] != old)


def test_edited_slices_are_put_right_and_wiped_ones_come_back_in_their_generation(
    api: StubApi, publisher: Publisher
) -> None:
    assert publisher.published.wait(10)
    body = api.get(f"{SLICES}/s0")
    api.put(f"{SLICES}/s0", {**body, "spec": {**body["spec"], "devices": []}})
    api.wait(lambda api: [n[1] for n in names(api.slices())] == [2, 2] and published(api))
    with api.changed:  # as a kubelet does when it starts
        for body in api.slices():
            api.delete(f"{SLICES}/{body['metadata']['name']}")
    api.wait(published)
    assert names(api.slices()) == [("s0", 2), ("s1", 2)]


def test_slices_that_an_older_driver_left_are_removed(api: StubApi, tmp_path: Path) -> None:
    [old] = Devices(["x"])(6)
    api.put(f"{SLICES}/old", {**old, "metadata": {"name": "old"}})
    client = KubeClient.connect(api.kubeconfig(tmp_path))
    publisher = Publisher(client, Devices(["a"]), driver_name="d.io", node_name="node-a")
    publisher.start()
    try:
        assert publisher.published.wait(10)
        assert names(api.slices()) == [("s0", 7)]
    finally:
        publisher.stop()


def test_a_server_that_refuses_is_asked_again(
    api: StubApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api.refuse(503, "not today")
    client = KubeClient.connect(api.kubeconfig(tmp_path))
    publisher = Publisher(client, Devices(["a"]), driver_name="d.io", node_name="node-a")
    publisher.start()
    try:
        assert not publisher.published.wait(0.3)
        api.serve()
        assert publisher.published.wait(10)
        assert "HTTP 503: not today; trying again" in caplog.text
    finally:
        publisher.stop()


def test_a_form_that_the_server_gives_a_slice_is_no_difference(
    api: StubApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = api.server.put

    def defaulting(plural: str, body: dict[str, Any]) -> dict[str, Any]:
        return put(plural, {**body, "spec": {**body["spec"], "somethingNew": False}})

    monkeypatch.setattr(api.server, "put", defaulting)
    client = KubeClient.connect(api.kubeconfig(tmp_path))
    publisher = Publisher(client, Devices(["a"]), driver_name="d.io", node_name="node-a")
    publisher.start()
    try:
        assert publisher.published.wait(10)
        assert names(api.slices()) == [("s0", 1)]
    finally:
        publisher.stop()


def test_what_the_server_says_reaches_the_message(api: StubApi, tmp_path: Path) -> None:
    client = KubeClient.connect(api.kubeconfig(tmp_path))
    assert client.get_claim("default", "none") is None
    with pytest.raises(KubeError, match=r"nodes/gone: HTTP 404: .* not found"):
        client.node_reference("gone")
    api.refuse(403, "you may not")
    with pytest.raises(KubeError, match="HTTP 403: you may not") as caught:
        client.get_claim("default", "none")
    assert caught.value.status == 403


def test_a_server_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    gone = StubApi()
    client = KubeClient.connect(gone.kubeconfig(tmp_path))
    gone.close()
    with pytest.raises(KubeError, match="cannot reach the API server"):
        client.get_claim("default", "none")


def test_of_two_instances_only_the_active_one_writes(api: StubApi, tmp_path: Path) -> None:
    client = KubeClient.connect(api.kubeconfig(tmp_path))
    asked = threading.Event()

    def passive() -> bool:
        asked.set()
        return False

    publisher = Publisher(
        client, Devices(["a"]), driver_name="d.io", node_name="node-a", active=passive
    )
    publisher.start()
    assert asked.wait(10)
    publisher.stop()
    assert api.slices() == []
    assert api.requests == []


def test_other_devices_are_published_as_soon_as_they_are_known(
    api: StubApi, tmp_path: Path
) -> None:
    client = KubeClient.connect(api.kubeconfig(tmp_path))
    devices = Devices(["a"])
    publisher = Publisher(client, devices, driver_name="d.io", node_name="node-a")
    publisher.start()
    try:
        assert publisher.published.wait(10)
        devices.names = (["a", "b"], ["c"])
        publisher.refresh()
        api.wait(lambda api: len(api.slices()) == 2)
        api.wait(lambda api: {s["spec"]["pool"]["generation"] for s in api.slices()} == {2})
    finally:
        publisher.stop()


def test_a_gpu_that_changes_its_mind_often_is_published_as_it_is_at_last(
    api: StubApi, tmp_path: Path
) -> None:
    client = KubeClient.connect(api.kubeconfig(tmp_path))
    devices = Devices(["0"])
    publisher = Publisher(client, devices, driver_name="d.io", node_name="node-a")
    publisher.start()
    try:
        for number in range(30):
            devices.names = ([str(number)],)
            publisher.refresh()
        api.wait(
            lambda api: [d["name"] for s in api.slices() for d in s["spec"]["devices"]] == ["29"]
        )
    finally:
        publisher.stop()
