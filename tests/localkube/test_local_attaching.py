"""Drivers as processes: one that no pod could use is said so at once; its next version may fail.

A next version that does not fail is in test_local_real.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from kube.kubelet.plugins import KNOWN_SERVICES
from localkube import command_driver
from localkube.base import ClusterError, ClusterUsageError
from localkube.component import Running
from localkube.driver import process
from localkube.driver.attached import Offer, explain_refusal, explain_undiallable, list_offers
from localkube.driver.process import Driver
from localkube.layout import Layout
from localkube.processes.supervision import Processes, ProcessSpec
from localkube.removal import remove_cluster
from nvml_driver.kubelet.service import SERVED, registration_service
from tests.localkube.local_support import short_directory
from tests.localkube.test_local_config import make_state
from tests.localkube.test_local_driver import METRICS, answering, slice_spec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")

NAME, KUBELET, DRIVER = "node-1/driver", "node-1/kubelet", "d.example.com"
ONCE = '[ -n "$POD_UID" ] || exec sleep 1000; echo "there is one"; exit 1'
"""A driver that does not run twice."""


@pytest.fixture
def layout() -> Iterator[Layout]:
    with short_directory() as folder:
        layout = Layout("test", folder / "c")
        yield layout
        remove_cluster(layout, lambda _line: None, keep_logs=False)


@contextmanager
def registering(
    registrar: Path, name: str, services: Sequence[str], endpoint: str = ""
) -> Iterator[None]:
    """A driver that waits for a kubelet."""
    registrar.mkdir(parents=True, exist_ok=True)
    server = grpc.server(ThreadPoolExecutor(1))
    handler = registration_service(name, endpoint, services, lambda: None)
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix:{registrar}/d-reg.sock")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


def driver(layout: Layout) -> Driver:
    """One of a node whose kubelet has registered nobody, and whose slices are published."""
    processes = Processes(layout)
    processes.start(ProcessSpec(KUBELET, ("/bin/sleep", "1000"), layout.log(KUBELET)))
    found = Driver(
        Running(layout, make_state(nodes=1), processes, command_driver(DRIVER, ("true",))), NAME
    )
    found.cluster.__dict__["api"] = answering({"items": [{"spec": slice_spec()}]})
    found.kubelet = answering("")
    return found


def running(layout: Layout, script: str) -> Driver:
    """One that does as a script says."""
    found = driver(layout)
    env = {"KUBELET_REGISTRAR_DIRECTORY_PATH": str(found.node.registrar)}
    command = ("/bin/sh", "-c", script)
    found.processes.start(ProcessSpec(NAME, command, layout.log(NAME), env=env))
    return found


def attach(
    layout: Layout,
    monkeypatch: pytest.MonkeyPatch,
    name: str = DRIVER,
    services: Sequence[str] = tuple(SERVED),
    metrics: str = METRICS,
    endpoint: str = "",
    slices: Sequence[dict[str, Any]] = (slice_spec(),),
    registers: bool = True,
) -> None:
    """Start a driver that registers so, and wait for it."""
    found = driver(layout)
    found.cluster.__dict__["api"] = answering({"items": [{"spec": one} for one in slices]})

    def start(spec: ProcessSpec) -> None:
        Processes(layout).start(spec)
        found.kubelet = answering(metrics)
        if registers:
            stack.enter_context(registering(found.node.registrar, name, services, endpoint))

    monkeypatch.setattr(found.processes, "start", start)
    with ExitStack() as stack:
        found.launch(ProcessSpec(NAME, ("/bin/sleep", "60"), layout.log(NAME)))


def test_a_driver_that_the_kubelet_accepts_by_its_name_is_attached(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach(layout, monkeypatch)


def test_a_driver_with_no_service_that_kubelets_know_is_not_waited_for(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = rf"{NAME}: no kubelet registers it: {DRIVER} offers v99.DRAPlugin; .*v1beta1.*log"
    with pytest.raises(ClusterError, match=said):
        attach(layout, monkeypatch, services=["v99.DRAPlugin"], metrics="")


def test_a_driver_that_registers_another_name_is_told_from_one_that_does_not(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "NAMED_SECONDS", 0.3)
    said = rf"a driver {DRIVER}, the name in its profile .*calls itself other\.example\.com"
    with pytest.raises(ClusterError, match=said):
        attach(layout, monkeypatch, name="other.example.com")


def test_what_does_not_answer_or_is_no_socket_offers_nothing(layout: Layout) -> None:
    registrar = layout.node(1).registrar
    with registering(registrar, DRIVER, ["v1.DRAPlugin", "x"], "/d/dra.sock"):
        (registrar / "notes").touch()
        assert list_offers(registrar) == [Offer(DRIVER, ("v1.DRAPlugin", "x"), "/d/dra.sock")]
    assert list_offers(registrar) == []
    assert list_offers(registrar / "none") == []


def test_one_driver_that_can_be_registered_is_enough() -> None:
    assert explain_refusal([]) == ""
    assert (
        explain_refusal([Offer("a", ("v99.DRAPlugin",), ""), Offer("b", KNOWN_SERVICES[1:], "")])
        == ""
    )
    assert "a offers no service" in explain_refusal([Offer("a", (), "")])


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (
            {"endpoint": "/d/dra.sock"},
            r"answer at its endpoint.*d\.example\.com registered the endpoint /d/dra\.sock",
        ),
        (
            {"registers": False, "metrics": ""},
            "to register it.*nothing answers on a socket in KUBELET_REGISTRAR",
        ),
        ({"slices": ()}, "complete ResourceSlices.*it is registered, and has published nothing"),
    ],
    ids=["endpoint", "silent", "no slices"],
)
def test_a_driver_that_does_not_get_there_is_told_the_likely_reason(
    driver: dict[str, Any], said: str, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("ATTACH_SECONDS", "NAMED_SECONDS"):
        monkeypatch.setattr(process, limit, 0.5)
    with pytest.raises(ClusterError, match=f"(?s){said}"):
        attach(layout, monkeypatch, **driver)


def test_an_endpoint_with_the_nodes_path_is_found(layout: Layout) -> None:
    root = layout.node(1).kubelet_root
    with registering(root / "plugins", DRIVER, ()):
        there = Offer(DRIVER, (), "/var/lib/kubelet/plugins/d-reg.sock")
        assert explain_undiallable([there], root) == ""
    assert "plugins/d-reg.sock, where no kubelet reaches it" in explain_undiallable([there], root)


@pytest.mark.parametrize("action", ["startNext", "startUnregistered", "replace"])
def test_a_program_that_does_not_run_twice_is_told_and_the_driver_runs_on(
    action: str, layout: Layout
) -> None:
    found = running(layout, ONCE)
    before = found.processes.records()
    with pytest.raises(ClusterError, match=r"next-driver exited while waiting(.|\n)*there is one"):
        found.disturb_next(action)
    assert found.processes.records() == before
    assert found.alive()


def test_every_other_instance_has_a_pod_uid(layout: Layout) -> None:
    log, registrar = layout.log(NAME), layout.node(1).registrar
    found = running(layout, f'echo "uid=$POD_UID at $KUBELET_REGISTRAR_DIRECTORY_PATH"; {ONCE}')
    found.processes.wait_ready(NAME, lambda: bool(log.read_text()), 10, "saying something")
    for action in ("startNext", "startUnregistered"):
        with pytest.raises(ClusterError):
            found.disturb_next(action)
    unregistered = layout.node(1).driver / "unregistered"
    said = [line for line in log.read_text().splitlines() if line.startswith("uid")]
    assert said == [f"uid= at {registrar}", f"uid=2 at {registrar}", f"uid=2 at {unregistered}"]
    assert not unregistered.exists()


def test_a_driver_that_nobody_named_is_not_waited_for(layout: Layout) -> None:
    unknown = Driver(Running(layout, make_state(nodes=1), Processes(layout)), NAME)
    with pytest.raises(ClusterUsageError, match=r"LocalOptions\.driver does not say which"):
        unknown.wait_published(NAME)
