"""What a kubelet lists, asked on its socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from conformance.scenario.observation import ListedClaim, ListedDevice
from conformance.targets.cluster.observe.observer import listed
from nvml_driver.kubelet.rpc import serve
from nvml_driver.kubeletapi.podresources.v1 import api_pb2 as api


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
    assert listed(socket, "ns", "p", "ctr0") == [ListedClaim("ns", "one", (device,))]
    assert listed(socket, "ns", "p", "bare") == []


@pytest.mark.parametrize("where", [("ns", "p", "x"), ("ns", "q", "ctr0"), ("other", "p", "ctr0")])
def test_what_is_not_listed_is_told_from_what_has_no_claim(
    where: tuple[str, str, str], socket: Path
) -> None:
    assert listed(socket, *where) is None


def test_a_kubelet_that_does_not_answer_lists_nothing(tmp_path: Path) -> None:
    assert listed(tmp_path / "none", "ns", "p", "ctr0") is None
