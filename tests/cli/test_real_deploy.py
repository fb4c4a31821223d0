"""ci/deploy on a real cluster: applied, running with its own rights alone, updated, removed.

The manifests are what the real kustomize makes of them; only the container's image is another,
because there is no registry here: it is empty, and the driver comes from this machine's files. With
NVML_DRA_DRIVER_IMAGE=ARCHIVE (ci/deploy/build-image) nothing at all is changed.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.engine.run.steps import hollow_node
from localkube import LocalCluster, LocalOptions
from tests.cli import deployment
from tests.cli.dra_objects import DRIVER, claim, good_config, pod
from tests.cli.plain_client import Api, Json, eventually
from tests.localkube import local_support as support

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_go,
    pytest.mark.slow,
    pytest.mark.everything,
]

NAMESPACE = "nvml-dra-driver"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


class Deployed(NamedTuple):
    cluster: LocalCluster
    admin: Api
    manifests: list[Json]
    image: str


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    """The overlay of simulated GPUs, applied to a cluster."""
    binaries = support.built_binaries()
    support.require_node_machine()
    manifests = deployment.render(deployment.SIMULATED)
    with support.short_directory() as directory:
        options = LocalOptions(name="d", state_dir=directory / "d", binaries=binaries)
        cluster = LocalCluster(options)
        try:
            access = cluster.up()
            admin = Api.admin(cluster)
            [daemon_set] = [one for one in manifests if one["kind"] == "DaemonSet"]
            if deployment.IMAGE:
                deployment.import_image(cluster, Path(deployment.IMAGE))
            else:
                deployment.from_this_machine(
                    daemon_set["spec"]["template"]["spec"],
                    access.image,
                    [sys.executable, "-m", "nvml_driver"],
                )
            with deployment.usual_node(cluster):
                for one in manifests:
                    admin.apply(one)
                yield Deployed(cluster, admin, manifests, access.image)
            admin.close()
        finally:
            cluster.down()


def wait_for_driver(deployed: Deployed) -> Json:
    """The one pod of the DaemonSet's newest state: ready, registered, with its slices published."""
    wanted = find(deployed, "DaemonSet")

    def ready() -> Json | None:
        found = deployed.admin.get(wanted)
        assert found is not None
        status, generation = found["status"], found["metadata"]["generation"]
        pods = deployed.admin.list(PODS)
        up_to_date = (
            status.get("observedGeneration") == generation
            and status.get("updatedNumberScheduled", 0) == 1
            and status.get("numberReady") == 1
            and len(pods) == 1
        )
        if not up_to_date or not slices(deployed.admin):
            return None
        return pods[0] if "the kubelet registered" in log_of(deployed, pods[0]) else None

    def told() -> str:
        pods = deployed.admin.list(PODS)
        return f"a ready driver: {[(one['status'], log_of(deployed, one)) for one in pods]}"

    found: Json = eventually(ready, told)
    return found


def log_of(deployed: Deployed, driver: Json) -> str:
    return deployed.admin.text("GET", f"{PODS}/{driver['metadata']['name']}/log")


def slices(api: Api) -> list[Json]:
    return [one for one in api.list(SLICES) if one["spec"]["driver"] == DRIVER]


def find(deployed: Deployed, kind: str) -> Json:
    [found] = [one for one in deployed.manifests if one["kind"] == kind]
    return found


def run_pod(deployed: Deployed, name: str) -> Json:
    """A claim for one GPU and a pod that has it, running."""
    admin = deployed.admin
    admin.create(claim(name, good_config()))
    manifest = pod(name, name, deployed.image)
    admin.create(manifest)

    def running() -> Json | None:
        found = admin.get(manifest)
        return found if found and found["status"].get("phase") == "Running" else None

    def told() -> str:
        events = admin.list("/api/v1/namespaces/default/events")
        said = [one["message"] for one in events if one["involvedObject"]["name"] == name]
        return f"pod {name} runs: {admin.get(manifest)}; events: {said}"

    found: Json = eventually(running, told)
    return found


def device_of(deployed: Deployed, name: str) -> str:
    found = deployed.admin.get(claim(name))
    assert found is not None
    [result] = found["status"]["allocation"]["devices"]["results"]
    device: str = result["device"]
    return device


def seen_by(deployed: Deployed, name: str) -> set[str]:
    """GPUs' device files that the pod's container has."""
    log = f"/api/v1/namespaces/default/pods/{name}/log"
    said = eventually(lambda: deployed.admin.text("GET", log), f"{name} says something")
    return {line for line in said.split() if line.startswith("nvidia") and line[6:].isdigit()}


def remove(deployed: Deployed, *manifests: Json) -> None:
    for one in manifests:
        deployed.admin.delete(one)
        wait_gone(deployed.admin, one)


def wait_gone(api: Api, manifest: Json) -> None:
    eventually(lambda: api.get(manifest) is None, f"{manifest['metadata']} is gone")


def test_the_daemon_sets_pod_becomes_ready_and_publishes(deployed: Deployed) -> None:
    found = wait_for_driver(deployed)
    [status] = found["status"]["containerStatuses"]
    assert status["started"]
    assert status["restartCount"] == 0
    [only] = slices(deployed.admin)
    assert only["spec"]["nodeName"] == "node-1"
    assert len(only["spec"]["devices"]) == 4


def test_the_driver_was_refused_nothing(deployed: Deployed) -> None:
    log = log_of(deployed, wait_for_driver(deployed))
    assert "slices of gpu.nvidia.com are published" in log
    assert [line for line in log.splitlines() if not re.match(r"I\d{4} ", line)] == []


def test_a_node_without_a_kubelet_gets_no_pod_of_it(deployed: Deployed) -> None:
    wait_for_driver(deployed)
    ours = find(deployed, "DaemonSet")
    everywhere = copy.deepcopy(ours)
    everywhere["metadata"] = {"name": "everywhere", "namespace": NAMESPACE}
    labels = {"everywhere": "yes"}
    everywhere["spec"] |= {"selector": {"matchLabels": labels}, "updateStrategy": {}}
    everywhere["spec"]["template"]["metadata"]["labels"] = labels
    spec = everywhere["spec"]["template"]["spec"]
    del spec["nodeSelector"]
    spec["containers"] = [{"name": "c", "image": deployed.image, "command": ["sleep", "1d"]}]
    hollow = hollow_node("dra-hollow", "a")
    deployed.admin.create(hollow)
    deployed.admin.create(everywhere)

    def wanted(daemon_set: Json) -> int:
        found = deployed.admin.get(daemon_set)
        assert found is not None
        number: int = found["status"].get("desiredNumberScheduled", 0)
        return number

    eventually(lambda: wanted(everywhere) == 2, "the other DaemonSet wants a pod on both nodes")
    assert wanted(ours) == 1
    remove(deployed, everywhere, hollow)


def test_an_update_under_a_held_claim_loses_nothing(deployed: Deployed) -> None:
    before = wait_for_driver(deployed)
    first = run_pod(deployed, "first")
    [number] = seen_by(deployed, "first")
    assert number == f"nvidia{device_of(deployed, 'first').removeprefix('gpu-')}"
    uids = {one["metadata"]["uid"] for one in slices(deployed.admin)}

    changed = copy.deepcopy(find(deployed, "DaemonSet"))
    changed["spec"]["template"]["metadata"]["annotations"] = {"test": "update"}
    deployed.admin.apply(changed)
    after = wait_for_driver(deployed)

    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert {one["metadata"]["uid"] for one in slices(deployed.admin)} == uids
    still = deployed.admin.get(first)
    assert still is not None
    assert still["metadata"]["uid"] == first["metadata"]["uid"]
    assert still["status"]["containerStatuses"][0]["restartCount"] == 0
    run_pod(deployed, "second")
    assert device_of(deployed, "second") != device_of(deployed, "first")
    cdi = deployed.cluster.layout.node(1).cdi
    assert len(list(cdi.iterdir())) == 2
    for name in ("first", "second"):
        remove(deployed, pod(name, name, ""), claim(name))
    eventually(lambda: not list(cdi.iterdir()), "the new driver removed the old one's CDI spec")


def test_the_probes_pass(deployed: Deployed) -> None:
    """The kubelet's own count; startup probes end with the first success."""

    def passed() -> str | None:
        said = deployed.admin.text("GET", "/api/v1/nodes/node-1/proxy/metrics/probes")
        ours = [line for line in said.splitlines() if 'container="driver"' in line]
        lively = [line for line in ours if 'probe_type="Liveness"' in line]
        assert not [line for line in lively if 'result="failed"' in line]
        return next((line for line in lively if 'result="successful"' in line), None)

    wait_for_driver(deployed)
    eventually(passed, "a liveness probe")


def test_deleting_it_leaves_no_slice_no_socket_and_no_object(deployed: Deployed) -> None:
    """The last test of this cluster: it removes the driver."""
    wait_for_driver(deployed)
    for one in reversed(deployed.manifests):
        deployed.admin.delete(one)
    for one in deployed.manifests:
        wait_gone(deployed.admin, one)
    node = deployed.cluster.layout.node(1)
    # The kubelet deletes the slices of a driver that has been gone for 30 s.
    eventually(lambda: not slices(deployed.admin), "the kubelet removed the slices", 60)
    assert list(node.registrar.iterdir()) == []
    assert [one for one in node.plugins.rglob("*") if one.is_socket()] == []
    assert list(node.cdi.iterdir()) == []
    checkpoint: Any = json.loads((node.plugins / DRIVER / "checkpoint.json").read_text())
    assert not checkpoint.get("claims")
