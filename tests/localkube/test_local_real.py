"""A real cluster with two nodes and drivers: it works, survives faults and leaves nothing."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from kubernetes import client, config
from kubernetes.stream import stream

from localkube import LocalCluster
from localkube.api import LocalApi
from localkube.base import ClusterError, ClusterUsageError
from localkube.binaries.versions import KUBERNETES
from tests.cli.plain_client import Json, eventually
from tests.localkube.pool import Shared

pytestmark = [pytest.mark.needs_root, pytest.mark.slow]

DRIVER = "gpu.nvidia.com"


@pytest.fixture
def running(two_nodes: Shared) -> Shared:
    return two_nodes


def run_pod(running: Shared, name: str, node: str) -> Json:
    """A pod on a node, running; a second call finds the same one."""
    command = ["sh", "-c", "trap 'exit 0' TERM; echo started; sleep 100000 & wait"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": running.access.image, "command": command}],
        },
    }

    def runs() -> Json | None:
        found = running.admin.get(pod) or running.admin.create(pod)
        return found if found["status"].get("phase") == "Running" else None

    found: Json = eventually(runs, f"{name} runs")
    return found


def delete_pod(running: Shared, pod: Json) -> None:
    running.admin.delete(pod)
    eventually(lambda: running.admin.get(pod) is None, "the pod is gone")


def test_access_says_all_that_a_target_needs(running: Shared) -> None:
    access = running.access
    assert access.kubernetes_version == KUBERNETES
    assert access.nodes == ("node-1", "node-2")
    assert access.context == f"dra-conformance-{running.cluster.layout.name}"
    assert running.cluster.access() == access
    assert {"etcd", "kube-apiserver", "node-2/kubelet", "node-1/driver"} <= set(
        access.component_logs
    )
    assert all(path.is_file() for path in access.component_logs.values())


def test_start_told_each_phase_in_one_line(running: Shared) -> None:
    for word in ("etcd", "kube-apiserver", "kube-scheduler", "containerd", "kubelet", "driver"):
        assert any(word in line for line in running.progress)
    assert not any("\n" in line for line in running.progress)


def test_every_component_is_shown_as_running(running: Shared) -> None:
    statuses = running.cluster.status()
    assert len(statuses) == 5 + 2 * 4  # four servers and the reaper; four processes per node
    assert all(one.running for one in statuses)


def test_resource_api_is_served_in_all_its_versions(running: Shared) -> None:
    groups = {group["name"]: group for group in running.admin.ask("GET", "/apis")["groups"]}
    versions = {one["version"] for one in groups["resource.k8s.io"]["versions"]}
    assert {"v1", "v1beta2", "v1beta1"} <= versions


def test_driver_has_published_for_each_node(running: Shared) -> None:
    slices = [one["spec"] for one in running.admin.list("/apis/resource.k8s.io/v1/resourceslices")]
    assert {one["nodeName"] for one in slices if one["driver"] == DRIVER} == {"node-1", "node-2"}


@pytest.mark.parametrize("node", ["node-1", "node-2"])
def test_pod_runs_and_can_be_looked_into_through_the_api_server(running: Shared, node: str) -> None:
    pod = run_pod(running, f"p-{node}", node)
    assert pod["spec"]["nodeName"] == node
    log = f"{running.admin.path(pod)}/log"  # its first line comes a moment after the pod is Running
    assert eventually(lambda: running.admin.text("GET", log), "the pod's log") == "started\n"
    with config.new_client_from_config(
        str(running.access.kubeconfig), context=running.access.context
    ) as api:
        session = stream(
            client.CoreV1Api(api).connect_get_namespaced_pod_exec,
            f"p-{node}",
            "default",
            command=["hostname"],
            stdout=True,
            _preload_content=False,
            _request_timeout=60,
        )
        connection = session.sock.sock  # the client forgets it, unclosed, when the server ends
        session.run_forever(timeout=60)
        said = session.read_stdout(timeout=30)
        session.close()
        connection.close()
    assert said == f"p-{node}\n"
    delete_pod(running, pod)


def test_drivers_credentials_do_not_reach_further_than_a_driver_must(running: Shared) -> None:
    layout = running.cluster.layout
    document = yaml.safe_load(layout.kubeconfig_for("driver").read_text())
    server = urlsplit(document["clusters"][0]["cluster"]["server"])
    assert server.hostname is not None
    assert server.port is not None
    token = document["users"][0]["user"]["token"]
    api = LocalApi(server.hostname, server.port, layout.pki, token=token)
    allowed = ("/apis/resource.k8s.io/v1/resourceslices", "/api/v1/nodes/node-1")
    refused = (
        "/api/v1/secrets",
        "/api/v1/pods",
        "/api/v1/nodes",
        "/apis/resource.k8s.io/v1/resourceclaims",
    )
    assert [path for path in allowed if api.get(path) is None] == []
    assert [path for path in refused if api.get(path) is not None] == []


def test_killed_component_is_seen_and_comes_back(running: Shared) -> None:
    def scheduler() -> Any:
        statuses = {one.name: one for one in running.cluster.status()}
        return statuses["kube-scheduler"]

    before = scheduler()
    running.cluster.disturb("kube-scheduler", "kill")
    assert not scheduler().running
    running.cluster.disturb("kube-scheduler", "start")
    assert scheduler().running
    assert scheduler().pid != before.pid


@pytest.mark.parametrize("component", ["kubelet", "containerd", "driver"])
def test_component_of_a_node_restarts_under_a_running_pod(running: Shared, component: str) -> None:
    name = f"restart-{component}"
    before = run_pod(running, name, "node-2")
    running.cluster.disturb(f"node-2/{component}", "restart")
    after = run_pod(running, name, "node-2")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    delete_pod(running, after)


def driver_pids(running: Shared) -> set[int]:
    """Of the instances of the driver of the second node that run."""
    found = {one.pid for one in running.cluster.status() if one.running and "driver" in one.name}
    return found - {one.pid for one in running.cluster.status() if one.name == "node-1/driver"}


def registrations(running: Shared) -> set[str]:
    return {path.name for path in running.cluster.layout.node(2).registrar.glob("*.sock")}


def test_driver_is_replaced_by_its_next_version_and_by_none_that_fails(running: Shared) -> None:
    cluster, name = running.cluster, "node-2/driver"
    components = cluster.components()
    [old] = driver_pids(running)
    cluster.disturb(name, "startNext")
    assert len(driver_pids(running)) == 2
    assert registrations(running) == {f"{DRIVER}-reg.sock", f"{DRIVER}-2-reg.sock"}
    assert cluster.components() == components
    cluster.disturb(name, "killNext")
    assert driver_pids(running) == {old}
    cluster.disturb(name, "start")
    assert registrations(running) == {f"{DRIVER}-reg.sock"}

    cluster.disturb(name, "startUnregistered")
    assert len(driver_pids(running)) == 2
    assert registrations(running) == {f"{DRIVER}-reg.sock"}
    with pytest.raises(ClusterError, match="never registers, and replaces nothing"):
        cluster.disturb(name, "replace")
    cluster.disturb(name, "start")
    assert driver_pids(running) == {old}

    cluster.disturb(name, "replace")
    [new] = driver_pids(running)
    assert new != old
    assert registrations(running) == {f"{DRIVER}-2-reg.sock"}
    cluster.disturb(name, "restart")
    assert len(driver_pids(running)) == 1
    assert registrations(running) == {f"{DRIVER}-2-reg.sock"}
    cluster.disturb(name, "replace")
    assert registrations(running) == {f"{DRIVER}-reg.sock"}
    assert cluster.components() == components
    with pytest.raises(
        ClusterUsageError, match="is not a driver; only drivers have a next version"
    ):
        cluster.disturb("node-2/kubelet", "replace")
    cluster.disturb(name, "startNext")  # it is not in the way of what starts or stops others


def test_component_that_does_not_exist_is_refused_naming_those_that_do(running: Shared) -> None:
    with pytest.raises(ClusterUsageError, match=r"no component 'etc'.*it has: etcd, kube-apis"):
        running.cluster.disturb("etc", "restart")


def test_second_start_under_the_same_name_is_refused(running: Shared) -> None:
    with pytest.raises(ClusterUsageError, match="exists already"):
        LocalCluster(running.cluster.options).up()
    assert all(one.running for one in running.cluster.status())
