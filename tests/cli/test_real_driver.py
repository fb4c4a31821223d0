"""The driver with a real kubelet, looked into: killed, upgraded and scraped under running pods.

That it may be restarted, and the kubelet too, scenarios say (`DevicePreparation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from kubernetes import client, config

from conformance.targets.opening.own_driver import Simulation, own_driver
from localkube.driver import spec
from tests.cli.driver_node import DRIVER, DriverNode
from tests.cli.driver_process import DriverProcess, eventually
from tests.localkube.pool import Shared

pytestmark = [pytest.mark.needs_root, pytest.mark.slow]

OLD = ("--pod-uid", "0b7e9d5c-1111-4c8e-9d2f-aaaaaaaaaaaa")
NEW = ("--pod-uid", "0b7e9d5c-2222-4c8e-9d2f-bbbbbbbbbbbb")
MANY = [f"many-{number}" for number in range(8)]  # as many as the node has GPUs


@pytest.fixture(scope="module")
def node(two_nodes: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """The first node of a cluster whose own drivers are stopped, and have left nothing."""
    cluster, access = two_nodes.cluster, two_nodes.access
    for name in access.nodes:
        cluster.disturb(f"{name}/driver", "stop")
    spec.forget(cluster.layout.node(1), own_driver(Simulation()))
    with config.new_client_from_config(str(access.kubeconfig), context=access.context) as api:
        client.ResourceV1Api(api).delete_collection_resource_slice()
        found = DriverNode(cluster, access, api, tmp_path_factory.mktemp("logs"))
        found.create_class()
        yield found
        api.rest_client.pool_manager.clear()  # leaving the context keeps its connections
    spec.forget(cluster.layout.node(1), own_driver(Simulation()))


def slices(node: DriverNode) -> dict[str, str]:
    """Name -> uid of the node's slices."""
    items = client.ResourceV1Api(node.api).list_resource_slice().items
    return {one.metadata.name: one.metadata.uid for one in items if one.spec.driver == DRIVER}


def end(node: DriverNode, *pods: str) -> None:
    """Delete the pods; nothing of them may be left."""
    for name in pods:
        node.delete_pod(name)
    node.gone(*pods)
    node.holds_exactly()


def test_pod_that_ends_while_the_driver_is_away_waits_for_it(node: DriverNode) -> None:
    with node.driver() as before:
        node.create_pod("ends")
        node.running("ends")
        before.stop()
    node.delete_pod("ends")
    eventually(lambda: not node.container("ends"), "the container has stopped")
    assert node.claims(), "the claim stays until the driver has unprepared it"
    assert node.prepared()
    assert node.specs()
    with node.driver() as after:
        node.gone("ends")
        node.holds_exactly()
        after.stop()


def test_killed_while_many_pods_start_each_still_gets_a_device_of_its_own(node: DriverNode) -> None:
    with node.driver() as before:
        for name in MANY:
            node.create_pod(name)
        eventually(node.specs, "a claim is being prepared")
        before.kill()
        killed_with = len(node.specs())
    assert killed_with < len(MANY), "killed too late to show anything"
    with node.driver() as after:
        node.running(*MANY)
        node.holds_exactly(*MANY)
        end(node, *MANY)
        after.stop()


def test_killed_while_many_pods_end_nothing_is_left(node: DriverNode) -> None:
    with node.driver() as before:
        for name in MANY:
            node.create_pod(name)
        node.running(*MANY)
        for name in MANY:
            node.delete_pod(name)
        eventually(lambda: len(node.specs()) < len(MANY), "a claim is being unprepared")
        before.kill()
    with node.driver() as after:
        node.gone(*MANY)
        node.holds_exactly()
        after.stop()


@pytest.mark.parametrize(
    ("leave", "stays"),
    [
        pytest.param(lambda old, new: old.stop(), 1, id="old stops", marks=pytest.mark.everything),
        pytest.param(lambda old, new: old.kill(), 1, id="old is killed"),
        pytest.param(lambda old, new: new.stop(), 0, id="new stops"),
        pytest.param(
            lambda old, new: new.kill(), 0, id="new is killed", marks=pytest.mark.everything
        ),
    ],
)
def test_rolling_update_loses_no_claim_whichever_instance_goes(
    node: DriverNode, leave: Callable[[DriverProcess, DriverProcess], None], stays: int
) -> None:
    with node.driver(*OLD) as old:
        node.create_pod("before")
        containers = node.running("before")
        with node.driver(*NEW) as new:
            published = slices(node)
            node.create_pod("both")
            containers |= node.running("both")
            for name in ("during-1", "during-2", "during-3"):
                node.create_pod(name)
            leave(old, new)
            pods = [*containers, "during-1", "during-2", "during-3"]
            now = node.running(*pods)
            assert now.items() >= containers.items(), "a running container was touched"
            node.holds_exactly(*pods)
            assert slices(node) == published, "the node's devices were withdrawn"
            node.create_pod("after")
            node.running("after")
            end(node, *pods, "after")
            (old, new)[stays].stop()


def test_metrics_and_health_follow_what_pods_do(node: DriverNode) -> None:
    def changed(before: dict[tuple[str, str], float]) -> dict[str, float]:
        after = driver.metrics()
        return {
            f"{operation} {what}": after[name] - before.get(name, 0.0)
            for operation in ("prepare", "unprepare")
            for what, name in (
                ("calls", ("nvidia_dra_requests_total", operation)),
                ("timed", ("nvidia_dra_request_duration_seconds_count", operation)),
            )
            if name in after
        }

    with node.driver("--metrics-port", "0", "--healthcheck-port", "0") as driver:
        start = driver.metrics()
        assert start["nvidia_dra_devices", ""] == 8
        assert start["nvidia_dra_prepared_devices", ""] == 0
        for name in MANY[:2]:
            node.create_pod(name)
        node.running(*MANY[:2])
        running = driver.metrics()
        assert running["nvidia_dra_prepared_devices", ""] == 2
        assert changed(start)["prepare calls"] >= 2
        assert changed(start)["prepare timed"] == changed(start)["prepare calls"]
        assert running["nvidia_dra_requests_inflight", "prepare"] == 0
        end(node, *MANY[:2])
        assert driver.metrics()["nvidia_dra_prepared_devices", ""] == 0
        assert changed(running)["unprepare calls"] >= 2
        assert "node_prepare_errors" not in " ".join(name for name, _ in driver.metrics())

        port = driver.hears(r"health checks on port (\d+)")
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(service="liveness"), timeout=30)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        driver.stop()


def test_nothing_is_left_on_the_node_after_all_this(node: DriverNode) -> None:
    """The last test of this node."""
    node.holds_exactly()
    layout = node.cluster.layout.node(1)
    assert list(layout.registrar.iterdir()) == []
    assert [path for path in (layout.plugins / DRIVER).glob("*") if path.is_socket()] == []
    assert [path.name for path in (node.state / "instances").glob("*")] == []
    leftovers = [path for path in Path(node.state).rglob("*") if path.name.startswith((".", "tmp"))]
    assert leftovers == []
