"""Drivers that follow a control file, and kubelets that list devices, on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from conformance.scenario.driver.profile import load_profile
from conformance.scenario.driver.simulated import Stimulus
from conformance.targets.cluster.observer import list_claims
from conformance.targets.cluster.reach import ControlFiles
from kube.base.errors import TargetError
from kube.kubelet import podresources_v1_pb2 as api
from kube.kubelet.rpc import serve
from kube.observations import ListedClaim, ListedDevice
from kube.values import Obj
from tests.scenario.shipped import ROOT

DEVICE: Obj = {
    "name": "fpga-12",
    "attributes": {"serial": {"string": "A1"}, "slot": {"int": 3}, "broken": {"bool": True}},
}
STIMULUS = Stimulus(
    file="control",
    health={
        "Healthy": ("well {index}",),
        "Unhealthy": ("break {device} {serial}", "slot {slot} {broken}"),
        "Unknown": ("forget {colour}",),
    },
)


@pytest.fixture
def files(tmp_path: Path) -> ControlFiles:
    (tmp_path / "control").write_text("kept\n")
    return ControlFiles(STIMULUS, {"node-1": tmp_path / "control", "node-2": tmp_path / "none"})


def test_lines_are_appended(files: ControlFiles, tmp_path: Path) -> None:
    files.set_health("node-1", DEVICE, "Unhealthy")
    files.set_health("node-1", DEVICE, "Healthy")
    text = (tmp_path / "control").read_text()
    assert text == "kept\nbreak fpga-12 A1\nslot 3 true\nwell 12\n"


def test_a_driver_that_has_no_file_is_not_told(files: ControlFiles, tmp_path: Path) -> None:
    with pytest.raises(
        TargetError, match=r"the driver of node-2 did not take device health: .*No such file"
    ):
        files.set_health("node-2", DEVICE, "Healthy")
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_said_is_an_error(files: ControlFiles) -> None:
    with pytest.raises(TargetError, match="no driver on node node-3 takes device health"):
        files.set_health("node-3", DEVICE, "Healthy")
    with pytest.raises(TargetError, match="the device fpga-12 has no attribute colour"):
        files.set_health("node-1", DEVICE, "Unknown")


def test_our_own_driver_is_told_by_the_bus_id() -> None:
    stimulus = load_profile("nvml-dra-driver", ROOT / "drivers").spec.stimulus
    assert stimulus is not None
    attributes = {"resource.kubernetes.io/pciBusID": {"string": "0000:00:1e.0"}}
    said = stimulus.make_lines("Unhealthy", {"name": "gpu-3", "attributes": attributes})
    assert said == "recovery 0000:00:1e.0 1\nevent 0000:00:1e.0 8 79\n"


def answer() -> api.ListPodResourcesResponse:
    device = api.ClaimResource(
        cdi_devices=[api.CDIDevice(name="v/c=x")],
        driver_name="d",
        pool_name="n0",
        device_name="gpu-0",
    )
    claim = api.DynamicResource(claim_name="one", claim_namespace="ns", claim_resources=[device])
    containers = [
        api.ContainerResources(name="bare"),
        api.ContainerResources(name="ctr0", dynamic_resources=[claim]),
    ]
    return api.ListPodResourcesResponse(
        pod_resources=[
            api.PodResources(name="p", namespace="other"),
            api.PodResources(name="p", namespace="ns", containers=containers),
        ]
    )


@pytest.fixture
def socket(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "s"
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((serve(api, {"List": lambda *_: answer()}),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    yield path
    server.stop(None).wait()


def test_a_container_has_the_claims_that_are_listed_for_it(socket: Path) -> None:
    device = ListedDevice("d", "n0", "gpu-0", ("v/c=x",))
    assert list_claims(socket, "ns", "p", "ctr0") == [ListedClaim("ns", "one", (device,))]
    assert list_claims(socket, "ns", "p", "bare") == []


@pytest.mark.parametrize("where", [("ns", "p", "x"), ("ns", "q", "ctr0"), ("other", "p", "ctr0")])
def test_what_is_not_listed_is_told_from_what_has_no_claim(
    where: tuple[str, str, str], socket: Path
) -> None:
    assert list_claims(socket, *where) is None


def test_a_kubelet_that_does_not_answer_lists_nothing(tmp_path: Path) -> None:
    assert list_claims(tmp_path / "none", "ns", "p", "ctr0") is None
