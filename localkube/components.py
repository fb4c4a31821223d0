"""The kinds of components of a local cluster, and each of them by its name.

``kube-scheduler`` is one of the control plane, ``node-1/kubelet`` one of a node, ``node-1/node``
the whole of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from kube.components import OTHER_SCHEDULER
from localkube.api import LocalApi, accepts_connections
from localkube.base import ClusterError, ClusterUsageError
from localkube.component import STOP_SECONDS, Component, OfNode, Running
from localkube.driver.attached import (
    ATTACH_SECONDS,
    PUBLISHED_AGAIN_SECONDS,
    delete_slices,
    registered_plugins,
)
from localkube.driver.process import Driver, OtherDriver
from localkube.driver.spec import check_unused, driver_spec, forget, reboot
from localkube.driverprogram import DriverProgram
from localkube.layout import NodeLayout
from localkube.node.config import gates_of_kubelet
from localkube.node.machine import lose_memory
from localkube.processes import procfs
from localkube.processes.deaths import NEXT
from localkube.processes.supervision import ProcessSpec
from localkube.state import Ports

NODE: Final = "node"  # What stands behind a node's name for the whole of it.

_CLAIMS_PATH: Final = "/apis/resource.k8s.io/v1/resourceclaims"
_NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"


class Server(Component):
    """A server of the control plane, which says itself whether it is healthy."""

    awaited = "/healthz"
    ports: Final[dict[str, Callable[[Ports], int]]] = {
        "kube-controller-manager": lambda ports: ports.controller_manager,
        "kube-scheduler": lambda ports: ports.scheduler,
    }

    @cached_property
    def _api(self) -> LocalApi:
        return self.cluster.server(self.port)  # health needs no credentials

    @property
    def port(self) -> int:
        return self.ports[self.name](self.cluster.state.ports)

    def is_ready(self) -> bool:
        """Return whether a GET of its health path answers 200."""
        return self._api.is_healthy(self.awaited)

    def metrics(self) -> str | None:
        """Return what it counts, as text; None without an answer."""
        return self.cluster.as_administrator(self.port).text("/metrics")


class ApiServer(Server):
    """kube-apiserver."""

    awaited = "/readyz"

    @cached_property
    def _api(self) -> LocalApi:
        return self.cluster.api


class Etcd(Server):
    """etcd, which would wait for streams of its clients that a kube-apiserver never ends.

    What it has confirmed is on disk, so it may be killed.
    """

    stop_seconds = 1.0
    awaited = "/health"

    @cached_property
    def _api(self) -> LocalApi:
        return self.cluster.server(self.cluster.state.ports.etcd_http, client="etcd-client")


class OtherScheduler(Component):
    """A scheduler of somebody else, of which nothing is known but whether it runs."""

    awaited = "it to run"

    def is_ready(self) -> bool:
        return self.processes.alive(self.name)


class Namespaces(Component):
    """The process that holds the namespaces of a node, and is named like it."""

    awaited = "its namespaces"

    def is_ready(self) -> bool:
        """Return whether all is set up: it becomes `sleep` then."""
        try:
            init = self.processes.node_init(self.name)
        except ClusterError:
            return False
        return procfs.command_name(init) == "sleep"


class Containerd(OfNode):
    """containerd."""

    awaited = "its socket"

    def is_ready(self) -> bool:
        return accepts_connections(self.node.containerd_socket)


class Kubelet(OfNode):
    """The kubelet, and with it the node as the API server knows it."""

    awaited = "its node to be Ready"

    def is_ready(self) -> bool:
        """Return whether the node is Ready, and no more tainted for when it was not."""
        if not self.kubelet.is_healthy("/healthz"):
            return False
        document = self.cluster.api.get(f"/api/v1/nodes/{self.node.name}")
        if document is None:
            return False
        conditions = {
            item["type"]: item["status"] for item in document["status"].get("conditions", ())
        }
        taints = {item["key"] for item in document["spec"].get("taints", ())}
        return conditions.get("Ready") == "True" and _NOT_READY_TAINT not in taints

    def _known_gates(self, gates: Mapping[str, bool]) -> Mapping[str, bool]:
        return gates_of_kubelet(gates, self.cluster.state.kubelet_version)

    def launch(self, spec: ProcessSpec) -> None:
        """Start it, and wait until the drivers that run are registered and published again."""
        super().launch(spec)
        running = [driver for driver in drivers_of(self.cluster, self.node) if driver.alive()]
        if not running:
            return
        self.processes.wait_ready(
            self.name,
            lambda: len(registered_plugins(self.kubelet)) >= len(running),
            ATTACH_SECONDS,
            "registering the drivers that still run",
        )
        for driver in running:
            # A kubelet that starts may have deleted its slices.
            driver.wait_published(self.name, PUBLISHED_AGAIN_SECONDS)


class WholeNode(OfNode):
    """All that runs on a node: ``node-1/node``."""

    def start(self) -> None:
        """Start each of its components, and wait for it."""
        for component in self._parts():
            component.start()

    def stop(self, _grace_seconds: float) -> None:
        """End it at once, and with all that it had in memory. Raises ClusterError."""
        names = [component.name for component in self._parts()]
        self.processes.stop(*names, f"{self.node.name}/{NEXT}", grace_seconds=0)
        lose_memory(self.node, self.processes.node_init(self.node.name))
        reboot(self.node, self.cluster.driver, self.cluster.other_driver)

    def _parts(self) -> list[Component]:
        """Return what runs on the node, in the order in which it starts."""
        name, cluster = self.node.name, self.cluster
        base_components = [
            Containerd(cluster, f"{name}/containerd"),
            Kubelet(cluster, f"{name}/kubelet"),
        ]
        records = self.processes.records()
        return [
            component
            for component in (*base_components, *drivers_of(cluster, self.node))
            if component.name in records
        ]


_KINDS: Final[dict[str, type[Component]]] = {
    "etcd": Etcd,
    "kube-apiserver": ApiServer,
    **dict.fromkeys(Server.ports, Server),
    OTHER_SCHEDULER: OtherScheduler,
    "containerd": Containerd,
    "kubelet": Kubelet,
    Driver.role: Driver,
    OtherDriver.role: OtherDriver,
    NODE: WholeNode,
}


class Components:
    """The components of one cluster by name."""

    def __init__(self, cluster: Running) -> None:
        self._cluster = cluster

    def names(self) -> list[str]:
        """Return names of what can be stopped and started: components, and each node as a whole."""
        cluster = self._cluster
        component_names = [
            name
            for name in cluster.processes.records()
            if name not in cluster.nodes and name.rpartition("/")[2] in _KINDS
        ]
        if cluster.other_driver is not None:
            other_drivers = (
                f"{name}/{OtherDriver.role}"
                for name in cluster.nodes
                if f"{name}/{Driver.role}" in component_names
            )
            component_names += (name for name in other_drivers if name not in component_names)
        return [*component_names, *(f"{name}/{NODE}" for name in cluster.nodes)]

    def of(self, name: str) -> Component:
        """Return the component of that name, whether or not it was ever started."""
        kind = Namespaces if name in self._cluster.nodes else _KINDS[name.rpartition("/")[2]]
        return kind(self._cluster, name)

    def launch(self, spec: ProcessSpec) -> None:
        """Start the component that a spec names, and wait until it is ready.

        Raises ClusterError: it did not get ready.
        """
        self.of(spec.name).launch(spec)

    def find_component(self, name: str) -> Component:
        """Return one of `names`. Raises ClusterUsageError: there is no such component."""
        if name not in (names := self.names()):
            raise ClusterUsageError(
                f"the local cluster has no component {name!r} that can be stopped or started; "
                f"it has: {', '.join(names)}"
            )
        return self.of(name)

    def driver(self, name: str) -> Driver:
        """Return a driver among `names`, not a node's second one. Raises ClusterUsageError."""
        component = self.find_component(name)
        if type(component) is not Driver:
            raise ClusterUsageError(f"{name!r} is not a driver; only drivers have a next version")
        return component

    def change_driver(self, driver: DriverProgram) -> None:
        """Start the drivers of all nodes anew, with the devices that this program has.

        Raises ClusterUsageError: devices are in use; ClusterError: a driver did not attach.
        """
        layout = self._cluster.layout
        nodes = self._cluster.nodes.values()
        specs = [driver_spec(layout, driver, node.index) for node in nodes]
        api, name = self._cluster.api, driver.name
        document = api.get(_CLAIMS_PATH)
        check_unused(document["items"] if document else (), name)
        self._cluster.processes.stop(*(spec.name for spec in specs), grace_seconds=STOP_SECONDS)
        for node in nodes:
            forget(node, driver)
        delete_slices(api, name)  # they would be taken for the next driver's
        for spec in specs:
            self.launch(spec)


def drivers_of(cluster: Running, node: NodeLayout) -> list[Driver]:
    """Return the driver of a node, and the second one where there is one."""
    kinds = (Driver, OtherDriver) if cluster.other_driver else (Driver,)
    return [kind(cluster, f"{node.name}/{kind.role}") for kind in kinds]
