"""The kubelet's side of the plugin: real gRPC over unix sockets."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from kube.kubelet import dra_health_v1_pb2 as health
from kube.kubelet import dra_v1_pb2 as v1
from kube.kubelet import dra_v1beta1_pb2 as v1beta1
from kube.kubelet import pluginregistration_v1_pb2 as registration
from kube.kubelet.rpc import make_stub as stub_of
from nvml_driver.errors import DriverError, KubeError
from nvml_driver.health.stream import HealthFeed
from nvml_driver.kubelet.plugin import KubeletPlugin
from tests.nvml_driver.helpers import make_claim, make_core, result

both_versions = pytest.mark.parametrize("messages", [v1, v1beta1], ids=["v1", "v1beta1"])


class Node:
    """A plugin, the claims that its API server has, and a kubelet's connections to it."""

    def __init__(self, root: Path) -> None:
        self.claims: dict[tuple[str, str], dict[str, Any]] = {}
        self.core = make_core(root)
        self.plugin = KubeletPlugin(
            self.core,
            lambda namespace, name: self.claims.get((namespace, name)),
            plugins=root / "p",
            registry=root / "r",
        )
        self.plugin.start()
        self.registrar = grpc.insecure_channel(f"unix://{self.plugin.registration_socket}")
        self.dra = grpc.insecure_channel(f"unix://{self.plugin.dra_socket}")

    def add(self, claim: dict[str, Any]) -> dict[str, str]:
        """Make the claim exist; its reference as fields of a Claim message."""
        metadata = claim["metadata"]
        self.claims[metadata["namespace"], metadata["name"]] = claim
        return {key: metadata[key] for key in ("namespace", "name", "uid")}

    def close(self) -> None:
        self.registrar.close()
        self.dra.close()
        self.plugin.stop(grace=0)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    running = Node(tmp_path)
    yield running
    running.close()


def test_the_plugin_listens_on_the_longest_path_that_the_kernel_takes(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's are too long
        room = 107 - len(f"{folder}//gpu.nvidia.com-reg.sock")
        registry = Path(folder) / ("r" * room)
        core = make_core(tmp_path)
        plugin = KubeletPlugin(core, lambda *_: None, plugins=Path(folder), registry=registry)
        assert len(str(plugin.registration_socket)) == 107
        plugin.start()
        try:
            with grpc.insecure_channel(f"unix:{plugin.registration_socket}") as channel:
                stub = stub_of(registration, channel)
                assert stub.GetInfo(registration.InfoRequest(), timeout=5).name == "gpu.nvidia.com"
        finally:
            plugin.stop(grace=0)


def test_the_plugin_registers_with_the_newest_version_first(node: Node) -> None:
    stub = stub_of(registration, node.registrar)
    info = stub.GetInfo(registration.InfoRequest(), timeout=5)
    assert (info.type, info.name) == ("DRAPlugin", "gpu.nvidia.com")
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    assert info.endpoint == str(node.plugin.dra_socket)
    refused = registration.RegistrationStatus(plugin_registered=False, error="no")
    stub.NotifyRegistrationStatus(refused, timeout=5)
    assert not node.plugin.registered.is_set()
    stub.NotifyRegistrationStatus(registration.RegistrationStatus(plugin_registered=True))
    assert node.plugin.registered.is_set()


@both_versions
@pytest.mark.parametrize("cancelled", [True, False])
def test_a_claim_that_was_unprepared_before_its_turn_is_not_prepared(
    tmp_path: Path, messages: Any, cancelled: bool
) -> None:
    """A kubelet has forgotten it: one that timed out, or one whose reconcile loop unprepared it."""
    reading, answered = threading.Event(), threading.Event()

    def get(_namespace: str, _name: str) -> dict[str, Any]:
        reading.set()
        answered.wait(10)
        return make_claim(result("gpu-0"))

    plugin = KubeletPlugin(make_core(tmp_path), get, plugins=tmp_path, registry=tmp_path)
    plugin.start()
    try:
        with grpc.insecure_channel(f"unix://{plugin.dra_socket}") as channel:
            stub = stub_of(messages, channel)
            claim = messages.Claim(namespace="default", name="claim-uid-1", uid="uid-1")
            request = messages.NodePrepareResourcesRequest(claims=[claim])
            call = stub.NodePrepareResources.future(request, timeout=30)
            assert reading.wait(10)
            if cancelled:
                call.cancel()
            gone = messages.NodeUnprepareResourcesRequest(claims=[claim])
            assert stub.NodeUnprepareResources(gone, timeout=10).claims["uid-1"].error == ""
            answered.set()
            if not cancelled:
                assert "was cancelled" in call.result().claims["uid-1"].error
        plugin.stop(grace=10)
        assert make_core(tmp_path).list_prepared() == {}
    finally:
        plugin.stop(grace=0)


def test_the_health_services_are_announced_after_the_dra_services(tmp_path: Path) -> None:
    core = make_core(tmp_path)
    feed = HealthFeed(lambda: core.inventory, "node-a")
    plugin = KubeletPlugin(core, lambda *_: None, plugins=tmp_path, registry=tmp_path, health=feed)
    plugin.start()
    try:
        with grpc.insecure_channel(f"unix://{plugin.registration_socket}") as channel:
            stub = stub_of(registration, channel)
            info = stub.GetInfo(registration.InfoRequest(), timeout=5)
        assert list(info.supported_versions) == [
            "v1.DRAPlugin",
            "v1beta1.DRAPlugin",
            "v1.DRAResourceHealth",
            "v1alpha1.DRAResourceHealth",
        ]
        with grpc.insecure_channel(f"unix://{plugin.dra_socket}") as channel:
            health_stub = stub_of(health, channel)
            stream = health_stub.NodeWatchResources(health.NodeWatchResourcesRequest(), timeout=10)
            assert len(next(iter(stream)).devices) == 4
    finally:
        plugin.stop(grace=0)


def test_a_share_id_is_reported_in_v1(node: Node) -> None:
    stub = stub_of(v1, node.dra)
    shared = v1.Claim(**node.add(make_claim(result("gpu-1", shareID="s-1"))))
    whole = v1.Claim(**node.add(make_claim(result("gpu-2"), uid="uid-2")))
    request = v1.NodePrepareResourcesRequest(claims=[shared, whole])
    answer = stub.NodePrepareResources(request, timeout=5)
    assert answer.claims["uid-1"].devices[0].share_id == "s-1"
    assert not answer.claims["uid-2"].devices[0].HasField("share_id")


@both_versions
def test_every_claim_of_a_call_has_its_own_result(node: Node, messages: Any) -> None:
    good = node.add(make_claim(result("gpu-0"), uid="good"))
    taken = node.add(make_claim(result("gpu-0"), uid="taken"))
    none = node.add(make_claim(uid="none"))
    replaced = {**node.add(make_claim(result("gpu-1"), uid="new")), "uid": "old"}
    unallocated = node.add(make_claim(result("gpu-1"), uid="unallocated"))
    node.claims["default", "claim-unallocated"].pop("status")
    gone = {"namespace": "default", "name": "gone", "uid": "gone"}
    asked = [good, taken, none, replaced, unallocated, gone]
    node.core.prepare(node.claims["default", "claim-good"])  # claims of a call have no order
    request = messages.NodePrepareResourcesRequest(
        claims=[messages.Claim(**reference) for reference in asked]
    )
    answer = stub_of(messages, node.dra).NodePrepareResources(request, timeout=5)
    assert set(answer.claims) == {reference["uid"] for reference in asked}
    errors = {uid: entry.error for uid, entry in answer.claims.items()}
    assert (errors["good"], errors["none"]) == ("", "")
    assert "gpu-0 is still prepared for claim default/claim-good" in errors["taken"]
    assert "claim default/claim-new (uid old) was replaced" in errors["old"]
    assert "is not allocated" in errors["unallocated"]
    assert errors["gone"] == "claim default/gone (uid gone) does not exist"
    assert list(node.core.list_prepared()) == ["good"]


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (KubeError("HTTP 500: out of order"), "cannot be read: HTTP 500: out of order"),
        (ZeroDivisionError("oops"), "internal error of the driver: ZeroDivisionError: oops"),
    ],
)
def test_a_claim_that_cannot_be_read_is_that_claims_error(
    tmp_path: Path, failure: Exception, message: str
) -> None:
    def fail(_namespace: str, _name: str) -> None:
        raise failure

    plugin = KubeletPlugin(make_core(tmp_path), fail, plugins=tmp_path, registry=tmp_path)
    plugin.start()
    try:
        with grpc.insecure_channel(f"unix://{plugin.dra_socket}") as channel:
            stub = stub_of(v1, channel)
            claim = v1.Claim(namespace="n", name="c", uid="u")
            request = v1.NodePrepareResourcesRequest(claims=[claim])
            answer = stub.NodePrepareResources(request, timeout=5)
        assert message in answer.claims["u"].error
    finally:
        plugin.stop(grace=0)


def test_a_socket_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    with pytest.raises(DriverError, match="at most 107: use shorter directories"):
        KubeletPlugin(make_core(tmp_path), lambda *_: None, plugins=deep, registry=tmp_path)
