"""Two instances of the driver on one node, and what a killed one leaves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from kube.kubelet import dra_v1_pb2 as v1
from kube.kubelet.rpc import make_stub as stub_of
from nvml_driver.errors import DriverError
from nvml_driver.kubelet.plugin import KubeletPlugin
from nvml_driver.kubelet.rolling import MAX_SOCKET_PATH, Instance, dra_socket, registration_socket
from tests.nvml_driver.helpers import make_claim, make_core, result

OLD, NEW = "0b7e9d5c-1111-4c8e-9d2f-aaaaaaaaaaaa", "0b7e9d5c-2222-4c8e-9d2f-bbbbbbbbbbbb"


def plugin(root: Path, pod_uid: str, claims: dict[str, dict[str, object]]) -> KubeletPlugin:
    return KubeletPlugin(
        make_core(root),
        lambda _namespace, name: claims.get(name),
        plugins=root / "p",
        registry=root / "r",
        pod_uid=pod_uid,
    )


def call(server: KubeletPlugin, what: str, uid: str) -> str:
    """The claim's error, empty for success."""
    claim = v1.Claim(namespace="default", name=f"claim-{uid}", uid=uid)
    with grpc.insecure_channel(f"unix://{server.dra_socket}") as channel:
        stub = stub_of(v1, channel)
        if what == "prepare":
            request = v1.NodePrepareResourcesRequest(claims=[claim])
            return str(stub.NodePrepareResources(request, timeout=10).claims[uid].error)
        asked = v1.NodeUnprepareResourcesRequest(claims=[claim])
        return str(stub.NodeUnprepareResources(asked, timeout=10).claims[uid].error)


def test_threads_may_ask_at_the_same_time_who_is_newest(tmp_path: Path) -> None:
    instance = Instance(tmp_path, driver_name="d", plugins=tmp_path / "p", registry=tmp_path / "r")
    instance.begin()
    together = threading.Barrier(4)

    def ask(_number: int) -> bool:
        together.wait(10)
        return all(instance.is_newest() for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [True] * 4
    instance.end()


@pytest.mark.parametrize("new_first", [True, False], ids=["new then old", "old then new"])
def test_whichever_instance_is_called_no_claim_is_lost(tmp_path: Path, new_first: bool) -> None:
    claims = {f"claim-{n}": make_claim(result(f"gpu-{n}"), uid=str(n)) for n in range(3)}
    claims["claim-taken"] = make_claim(result("gpu-0"), uid="taken")
    old, new = plugin(tmp_path, OLD, claims), plugin(tmp_path, NEW, claims)
    old.start()
    assert call(old, "prepare", "0") == ""
    new.start()
    one, two = (new, old) if new_first else (old, new)
    try:
        assert len(list((tmp_path / "r").iterdir())) == 2
        assert "still prepared for claim default/claim-0" in call(one, "prepare", "taken")
        assert call(one, "prepare", "1") == ""
        assert call(two, "prepare", "1") == "", "repeated at the other instance"
        assert call(two, "prepare", "2") == ""
        assert call(one, "unprepare", "0") == ""
        assert call(two, "prepare", "taken") == ""
        assert call(one, "unprepare", "taken") == ""
        old.stop(grace=0)
        assert list((tmp_path / "r").iterdir()) == [new.registration_socket]
        assert call(new, "unprepare", "1") == ""
    finally:
        old.stop(grace=0)
        new.stop(grace=0)
    assert set(make_core(tmp_path).list_prepared()) == {"2"}
    assert len(list((tmp_path / "cdi").glob("*.json"))) == 1


def instance(root: Path, pod_uid: str = "") -> Instance:
    (root / "state").mkdir(exist_ok=True)
    return Instance(
        root / "state",
        driver_name="gpu.nvidia.com",
        plugins=root / "p",
        registry=root / "r",
        pod_uid=pod_uid,
    )


def test_without_pod_uids_a_second_instance_is_refused(tmp_path: Path) -> None:
    first = instance(tmp_path)
    first.begin()
    with pytest.raises(DriverError, match=rf"process {os.getpid()}.*--pod-uid"):
        instance(tmp_path).begin(timeout=0)
    first.end()
    second = instance(tmp_path)
    second.begin(timeout=0)
    second.end()


def test_the_newest_of_the_living_publishes(tmp_path: Path) -> None:
    old, new = instance(tmp_path, OLD), instance(tmp_path, NEW)
    old.begin()
    assert old.is_newest()
    new.begin()
    assert (old.is_newest(), new.is_newest()) == (False, True)
    new.end()
    assert old.is_newest(), "a roll-back: the old one goes on"
    old.end()
    assert list((tmp_path / "state" / "instances").iterdir()) == []


def test_what_a_killed_instance_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    living, new = instance(tmp_path, OLD), instance(tmp_path, NEW)
    living.begin()
    killed = instance(tmp_path, "killed")
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.nvml_driver.kubelet.test_rolling import instance\n"
        "instance(Path(sys.argv[1]), 'killed').begin(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=Path(__file__).resolve().parents[3],
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL
    foreign = tmp_path / "r" / "other.example.com-reg.sock"
    sockets = [living.registration_socket, killed.registration_socket, foreign]
    for path in sockets:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    new.begin()
    assert [path.exists() for path in sockets] == [True, False, True]
    assert new.is_newest()
    living.end()
    new.end()


@pytest.mark.parametrize(
    ("folder", "driver", "expected"),
    [
        (20, "gpu.nvidia.com", "gpu.nvidia.com-{uid}-reg.sock"),
        (60, "gpu.nvidia.com", "gpu.nvidia.com-"),
        (60, "a-driver-with-a-very-long-name.division.example.com", "dra-"),
    ],
)
def test_long_names_still_give_sockets_that_can_be_made(
    folder: int, driver: str, expected: str
) -> None:
    registry = Path("/" + "r" * (folder - 1))
    paths = [registration_socket(registry, driver, uid) for uid in (OLD, NEW)]
    assert all(len(str(path)) <= MAX_SOCKET_PATH for path in paths)
    assert paths[0] != paths[1]
    assert paths[0].name.startswith(expected.format(uid=OLD))
    assert paths[0].name.endswith("-reg.sock")
    assert paths == [registration_socket(registry, driver, uid) for uid in (OLD, NEW)]


def test_a_long_plugin_directory_gives_a_shorter_dra_socket() -> None:
    plugins = Path("/" + "p" * 50)
    assert dra_socket(plugins, "gpu.nvidia.com", OLD).name.startswith("dra-")
    assert len(str(dra_socket(plugins, "gpu.nvidia.com", OLD))) <= MAX_SOCKET_PATH
