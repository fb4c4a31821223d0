"""A driver that registers so that no pod can ever use it: said at once, and in which way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from conformance.clusters.base import ClusterError
from conformance.clusters.local import attached
from conformance.clusters.local.layout import Layout
from conformance.clusters.local.processes import Processes, ProcessSpec
from conformance.clusters.local.registration import KNOWN_SERVICES, Offer, offers, refusal
from conformance.clusters.local.removal import remove_cluster
from nvml_driver.kubelet.service import SERVED, registration_service
from tests.clusters.local_support import short_directory
from tests.clusters.test_local_driver import METRICS, answering

NAME, DRIVER = "node-1/driver", "d.example.com"


@pytest.fixture
def layout() -> Iterator[Layout]:
    with short_directory() as folder:
        layout = Layout("test", folder / "c")
        yield layout
        remove_cluster(layout, lambda _line: None, keep_logs=False)


@contextmanager
def registering(registrar: Path, name: str, services: Sequence[str]) -> Iterator[None]:
    """A driver that waits for a kubelet."""
    registrar.mkdir(parents=True)
    server = grpc.server(ThreadPoolExecutor(1))
    handler = registration_service(name, "/d/dra.sock", services, lambda: None)
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix:{registrar}/d-reg.sock")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


def attach(layout: Layout, kubelet: str) -> None:
    processes = Processes(layout)
    processes.start(ProcessSpec(NAME, ("/bin/sleep", "60"), layout.log(NAME)))
    node = layout.node(1)
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node.name, "pool": pool}
    api = answering({"items": [{"spec": spec}]})
    attached.wait_attached(processes, NAME, DRIVER, node, api, answering(kubelet))


def test_a_driver_that_the_kubelet_accepts_by_its_name_is_attached(layout: Layout) -> None:
    with registering(layout.node(1).registrar, DRIVER, list(SERVED)):
        attach(layout, METRICS)


def test_a_driver_with_no_service_that_kubelets_know_is_not_waited_for(layout: Layout) -> None:
    said = rf"{NAME}: no kubelet registers it: {DRIVER} offers v99.DRAPlugin; .*v1beta1.*log"
    with (
        registering(layout.node(1).registrar, DRIVER, ["v99.DRAPlugin"]),
        pytest.raises(ClusterError, match=said),
    ):
        attach(layout, "")


def test_a_driver_that_registers_another_name_is_told_from_one_that_does_not(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached, "NAMED_SECONDS", 0.3)
    said = rf"a driver {DRIVER}, the name in its profile .*calls itself other\.example\.com"
    with (
        registering(layout.node(1).registrar, "other.example.com", list(SERVED)),
        pytest.raises(ClusterError, match=said),
    ):
        attach(layout, METRICS)


def test_what_does_not_answer_or_is_no_socket_offers_nothing(layout: Layout) -> None:
    registrar = layout.node(1).registrar
    with registering(registrar, DRIVER, ["v1.DRAPlugin", "x"]):
        (registrar / "notes").touch()
        assert offers(registrar) == [Offer(DRIVER, ("v1.DRAPlugin", "x"))]
    assert offers(registrar) == []
    assert offers(registrar / "none") == []


def test_one_driver_that_can_be_registered_is_enough() -> None:
    assert refusal([]) == ""
    assert refusal([Offer("a", ("v99.DRAPlugin",)), Offer("b", KNOWN_SERVICES[1:])]) == ""
    assert "a offers no service" in refusal([Offer("a", ())])
