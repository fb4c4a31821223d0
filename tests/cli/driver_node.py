"""A node of a real local cluster whose driver tests start, stop and kill as they like."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from conformance.data import scenarios_dir
from conformance.scenario.driver.profile import load_profile
from localkube import LocalCluster
from localkube.api import LocalApi
from localkube.base import ClusterAccess
from localkube.driver.attached import has_published
from localkube.driver.spec import driver_environment
from localkube.processes.tools import python_path
from nvml_driver.model.prepared import ClaimRecord
from nvml_driver.prepare.checkpoint import Checkpoint
from tests.cli.driver_process import DriverProcess, eventually

DRIVER, NODE, NAMESPACE = "gpu.nvidia.com", "node-1", "default"
NUDGE_SECONDS = 3.0
HOLD = "trap 'exit 0' TERM; sleep 100000 & wait"


@dataclass
class DriverNode:
    """The node, its cluster's API, and the processes that a test started."""

    cluster: LocalCluster
    access: ClusterAccess
    api: Any
    logs: Path
    started: int = 0

    @property
    def state(self) -> Path:
        """The driver's state directory."""
        return self.cluster.layout.node(1).driver / "state"

    @contextmanager
    def driver(self, *options: str) -> Iterator[DriverProcess]:
        """A driver that serves; killed at the end if it still runs."""
        process = self.start(*options)
        try:
            self.serves(process)
            yield process
        finally:
            process.kill()

    def start(self, *options: str) -> DriverProcess:
        """A driver that begins."""
        layout, node = self.cluster.layout, self.cluster.layout.node(1)
        command = [
            *(sys.executable, "-m", "nvml_driver", "run", "--simulate", "l40sx8"),
            *("--state-dir", str(self.state), "--device-root", str(node.driver / "devices")),
            *options,
        ]
        environment = driver_environment(layout, node) | {"PYTHONPATH": python_path()}
        self.started += 1
        log = self.logs / f"driver-{self.started}.log"
        return DriverProcess(command, {"PATH": "/usr/bin:/bin", **environment}, log)

    def serves(self, process: DriverProcess) -> None:
        """Wait until the kubelet has registered it and its devices are published."""
        process.hears(r"the kubelet registered")
        eventually(self.slices_complete, "complete ResourceSlices")

    def slices_complete(self) -> bool:
        """Whether the node's pool is published whole."""
        document = yaml.safe_load(self.access.kubeconfig.read_text())
        server = urlsplit(document["clusters"][0]["cluster"]["server"])
        token = document["users"][0]["user"]["token"]
        assert server.hostname is not None
        assert server.port is not None
        api = LocalApi(server.hostname, server.port, self.cluster.layout.pki, token=token)
        return has_published(api, DRIVER, NODE)

    def create_class(self) -> None:
        """The driver's DeviceClass and a template for one of its devices."""
        described = load_profile(DRIVER, scenarios_dir() / "drivers").spec.classes["gpu"]
        resource = client.ResourceV1Api(self.api)
        resource.create_device_class(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": described.name},
                "spec": described.spec,
            }
        )
        request = {"name": "gpu", "exactly": {"deviceClassName": described.name}}
        resource.create_namespaced_resource_claim_template(
            NAMESPACE,
            {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": [request]}}}},
        )

    def create_pod(self, name: str) -> None:
        """A pod with a device of its own, that runs until it is deleted."""
        container = {
            "name": "c",
            "image": self.access.image,
            "command": ["sh", "-c", HOLD],
            "resources": {"claims": [{"name": "gpu"}]},
        }
        pod = {
            "metadata": {"name": name},
            "spec": {
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            },
        }
        client.CoreV1Api(self.api).create_namespaced_pod(NAMESPACE, pod)

    def running(self, *names: str) -> dict[str, str]:
        """Wait for the pods; name -> id of the container, which tells whether it is the same."""
        found: dict[str, str] = {}

        def unfinished() -> set[str]:
            found.update((name, self.container(name)) for name in names if not found.get(name))
            return {name for name in names if not found[name]}

        eventually(self.nudging(unfinished), f"{', '.join(names)} running")
        return found

    def container(self, name: str) -> str:
        """Id of the pod's container while it runs, else empty."""
        status = client.CoreV1Api(self.api).read_namespaced_pod_status(name, NAMESPACE).status
        [container] = status.container_statuses or [None]
        return container.container_id if container and container.state.running else ""

    def delete_pod(self, name: str) -> None:
        """Ask for the pod's end."""
        client.CoreV1Api(self.api).delete_namespaced_pod(name, NAMESPACE)

    def nudge(self, *names: str) -> None:
        """Make the kubelet look at the pods now.

        It lets a minute pass after an error of the driver, or of the API server, which may refuse
        it a claim that it does not know yet to be for the node (seen where processors are scarce).
        """
        for name in names:
            change = {"metadata": {"annotations": {"nudged": str(time.monotonic_ns())}}}
            with suppress(ApiException):  # gone meanwhile
                client.CoreV1Api(self.api).patch_namespaced_pod(name, NAMESPACE, change)

    def gone(self, *names: str) -> None:
        """Wait until the pods are gone."""

        def there() -> set[str]:
            pods = client.CoreV1Api(self.api).list_namespaced_pod(NAMESPACE).items
            return {pod.metadata.name for pod in pods} & set(names)

        eventually(self.nudging(there), f"{', '.join(names)} gone")

    def nudging(self, unfinished: Callable[[], Collection[str]]) -> Callable[[], bool]:
        """Whether no pod is unfinished; asked again and again, it nudges those that are."""
        nudged = time.monotonic()

        def done() -> bool:
            nonlocal nudged
            left = unfinished()
            if left and time.monotonic() - nudged > NUDGE_SECONDS:
                self.nudge(*left)
                nudged = time.monotonic()
            return not left

        return done

    def claims(self) -> dict[str, str]:
        """Uid -> device of the claims in the API server; not yet allocated: empty."""
        found = {}
        for claim in client.ResourceV1Api(self.api).list_namespaced_resource_claim(NAMESPACE).items:
            allocation = claim.status.allocation if claim.status else None
            [result] = allocation.devices.results if allocation else [None]
            found[claim.metadata.uid] = result.device if result else ""
        return found

    def prepared(self) -> dict[str, ClaimRecord]:
        """Uid -> record of the claims in the driver's checkpoint."""
        return dict(Checkpoint(self.state, driver_name=DRIVER, node_name=NODE))

    def specs(self) -> list[str]:
        """Names of all files in the CDI directory."""
        return sorted(path.name for path in self.cluster.layout.node(1).cdi.iterdir())

    def holds_exactly(self, *names: str) -> None:
        """The pods' claims, and no others, are allocated, prepared and have a CDI spec each.

        Without names: nothing is left anywhere.
        """

        def all_there() -> list[dict[str, str]]:
            found = self.claims()
            return [found] if len(found) == len(names) else []

        [claims] = eventually(all_there, f"{len(names)} claims in the API server")
        eventually(
            lambda: self.prepared().keys() == claims.keys() and len(self.specs()) == len(names),
            f"prepared {sorted(claims)}",
        )
        assert len(set(claims.values()) - {""}) == len(names), "each has a device of its own"
        for uid, record in self.prepared().items():
            assert [device.device_name for device in record.devices] == [claims[uid]]
            assert [name for name in self.specs() if uid in name], f"no CDI spec for {uid}"
