"""Each component's readiness, and breaking and restoring one.

A start and a restart wait for the same sign, so it is written down once here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path

import yaml

from conformance.clusters.base import ClusterError, ClusterUsageError
from conformance.clusters.local import (
    attached,
    driver,
    nextdriver,
    node,
    nodeconfig,
    otherdriver,
    owndriver,
    poweroff,
    procfs,
)
from conformance.clusters.local.api import LocalApi
from conformance.clusters.local.layout import Layout
from conformance.clusters.local.network import LOOPBACK
from conformance.clusters.local.nextdriver import NextDriver
from conformance.clusters.local.options import OtherDriver
from conformance.clusters.local.processes import Processes, ProcessSpec
from conformance.clusters.local.state import State

READY_SECONDS = 120.0
"""Longest that a component may take. Ordinary machines need 1 to 10 s; a loaded one much more."""

STOP_SECONDS = 15.0
ETCD_STOP_SECONDS = 1.0
"""It waits for streams of its clients, which a kube-apiserver never ends; what it has confirmed is
on disk by then, so it may be killed."""

NODE = "node"
"""What stands behind a node's name for the whole of it."""

_DRIVERS = ("driver", otherdriver.PART)
_CLAIMS_PATH = "/apis/resource.k8s.io/v1/resourceclaims"
_NOT_READY_TAINT = "node.kubernetes.io/not-ready"


class Components:
    """The components of one cluster whose record is `state`."""

    def __init__(
        self,
        layout: Layout,
        state: State,
        processes: Processes,
        driver_name: str,
        other_driver: OtherDriver | None = None,
    ) -> None:
        """Look after the processes of `layout`; `driver_name` is what slices carry."""
        self._layout = layout
        self._state = state
        self._processes = processes
        self._driver_name = driver_name
        self._other = other_driver

    @cached_property
    def api(self) -> LocalApi:
        """The API server, as administrator."""
        return self._as_administrator(self._state.ports.api)

    def metrics(self, name: str) -> str | None:
        """The metrics of kube-controller-manager or kube-scheduler; None without an answer."""
        server = self._servers.get(name)
        if server is None:
            raise ClusterUsageError(f"no metrics are read of component {name!r}")
        return self._as_administrator(server).text("/metrics")

    @property
    def _servers(self) -> dict[str, int]:
        """What serves beside the API server, and its port."""
        ports = self._state.ports
        return {
            "kube-controller-manager": ports.controller_manager,
            "kube-scheduler": ports.scheduler,
        }

    def _as_administrator(self, port: int) -> LocalApi:
        document = yaml.safe_load(self._layout.kubeconfig.read_text())
        token = document["users"][0]["user"]["token"]
        return LocalApi(LOOPBACK, port, ca=self._ca, token=token)

    def wait_ready(self, name: str) -> None:
        """Wait until the component does its work.

        Raises:
            ClusterError: it exited, or took more than `READY_SECONDS`.
        """
        check, what = self._readiness(name)
        self._processes.wait_ready(name, check, READY_SECONDS, what)

    def names(self) -> list[str]:
        """What can be stopped and started: the components, and each node as a whole."""
        nodes = self._node_names()
        others = (*nodes, "reaper", *(f"{name}/{nextdriver.PART}" for name in nodes))
        parts = [name for name in self._processes.records() if name not in others]
        if self._other is not None:
            beside = (f"{name}/{otherdriver.PART}" for name in nodes if f"{name}/driver" in parts)
            parts += (name for name in beside if name not in parts)
        return [*parts, *(f"{name}/{NODE}" for name in nodes)]

    def stop(self, name: str, grace_seconds: float = STOP_SECONDS) -> None:
        """End a component; a node at once, and with all that it had in memory.

        Raises:
            ClusterUsageError: there is no such component.
            ClusterError: something of a node does not end.
        """
        node_name, _, part = name.partition("/")
        if part == otherdriver.PART and name not in self._processes.records():
            return
        if part != NODE:
            self._spec(name)
            longest = ETCD_STOP_SECONDS if name == "etcd" else grace_seconds
            self._processes.stop(name, grace_seconds=min(grace_seconds, longest))
            return
        beside = f"{node_name}/{nextdriver.PART}"
        self._processes.stop(*self._on_node(node_name), beside, grace_seconds=0)
        layout = self._layout.node(self._index(node_name))
        poweroff.lose_memory(layout, self._processes.node_init(node_name))

    def start(self, name: str) -> None:
        """Start a component as before, and wait until it is ready; nothing happens if it runs.

        A driver runs alone then: its next version ends.

        Raises:
            ClusterUsageError: there is no such component, or it cannot be started alone.
            ClusterError: it did not come back.
        """
        node_name, _, part = name.partition("/")
        if part == NODE:
            for one in self._on_node(node_name):
                self.start(one)
            return
        spec = self._spec(name)
        runs = self._processes.alive(name)
        if part == "driver":
            self.next_driver(name).end(forget=runs)
        if runs:
            return
        if part in _DRIVERS:
            self.start_driver(spec)
            return
        self._processes.start(spec)
        self.wait_ready(name)
        still = sum(self._processes.alive(f"{node_name}/{one}") for one in _DRIVERS)
        if part == "kubelet" and still:
            self._processes.wait_ready(
                name,
                lambda: len(attached.registered_plugins(self._kubelet(node_name))) >= still,
                attached.READY_SECONDS,
                "registering the drivers that still run",
            )
            # A kubelet that starts may have deleted them.
            attached.wait_published(self._processes, name, self._driver_name, node_name, self.api)

    def remove_other_driver(self, name: str) -> None:
        """End a node's second driver, by its name among the components, and what there is of it.

        Raises:
            ClusterUsageError: there is none.
        """
        if self._other is None or name not in self.names():
            raise ClusterUsageError(f"the local cluster has no {name!r}")
        layout = self._layout.node(self._index(name.partition("/")[0]))
        otherdriver.remove(layout, self._other.name, self._processes, self.api, STOP_SECONDS)

    def next_driver(self, name: str) -> NextDriver:
        """The next version of a node's driver, by the driver's name among the components.

        Raises:
            ClusterUsageError: there is no such driver.
        """
        node_name, _, part = name.partition("/")
        if part != "driver":
            raise ClusterUsageError(f"{name!r} is no driver, which alone has a next version")
        self._spec(name)
        layout, kubelet = self._layout.node(self._index(node_name)), self._kubelet(node_name)
        return NextDriver(layout, self._processes, self.api, kubelet, self._driver_name)

    def start_driver(self, spec: ProcessSpec) -> None:
        """Start a driver on its node and wait until it is attached (driver.py).

        Raises:
            ClusterError: it did not attach.
        """
        node_name = spec.name.partition("/")[0]
        layout = self._layout.node(self._index(node_name))
        kubelet = self._kubelet(node_name)
        others = otherdriver.sockets(layout, self._other.name) if self._other else set()
        name, stays = self._driver_name, others
        if self._other is not None and spec.name.endswith(f"/{otherdriver.PART}"):
            name = self._other.name
            stays = set(map(str, layout.registrar.glob("*"))) - others
        # A driver that was killed leaves its registration socket; the kubelet takes it for
        # registered until the socket is gone, and would hide whether the new one registers.
        for stale in layout.registrar.glob("*"):
            if str(stale) not in stays:
                stale.unlink(missing_ok=True)
        if set(attached.registered_plugins(kubelet)) - stays:
            self._processes.wait_ready(
                f"{node_name}/kubelet",
                lambda: set(attached.registered_plugins(kubelet)) <= stays,
                attached.READY_SECONDS,
                "waiting for the earlier driver to be unregistered",
            )
        self._processes.start(spec)
        attached.wait_attached(self._processes, spec.name, name, layout, self.api, kubelet, stays)

    def change_driver(self, specs: Sequence[ProcessSpec]) -> None:
        """Have our own driver show other devices: one spec for each node.

        Raises:
            ClusterUsageError: devices are in use.
            ClusterError: a driver did not attach.
        """
        document = self.api.get(_CLAIMS_PATH)
        owndriver.check_unused(document["items"] if document else (), self._driver_name)
        selector = f"?fieldSelector=spec.driver%3D{self._driver_name}"
        self._processes.stop(*(spec.name for spec in specs), grace_seconds=STOP_SECONDS)
        for spec in specs:
            owndriver.forget(self._layout.node(self._index(spec.name.partition("/")[0])))
        # They would be taken for the next driver's.
        self.api.delete(attached.SLICES_PATH + selector)
        for spec in specs:
            self.start_driver(spec)

    def _spec(self, name: str) -> ProcessSpec:
        records = self._processes.records()
        node_name, _, part = name.partition("/")
        if part == otherdriver.PART and self._other is not None and name in self.names():
            return otherdriver.spec(self._layout, self._other, self._index(node_name))
        if name not in self.names() or name not in records:
            raise ClusterUsageError(
                f"the local cluster has no component {name!r} that can be stopped or started; "
                f"it has: {', '.join(self.names())}"
            )
        return records[name].spec

    def _on_node(self, node_name: str) -> list[str]:
        """The components of a node, in the order in which they start."""
        names = [f"{node_name}/{part}" for part in ("containerd", "kubelet", *_DRIVERS)]
        return [name for name in names if name in self._processes.records()]

    def _readiness(self, name: str) -> tuple[Callable[[], bool], str]:
        ports = self._state.ports
        pki = self._layout.pki
        if name == "etcd":
            pair = (pki / "etcd-client.crt", pki / "etcd-client.key")
            etcd = LocalApi(LOOPBACK, ports.etcd_http, ca=self._ca, client=pair)
            return partial(etcd.healthy, "/health"), "waiting for /health"
        if name == "kube-apiserver":
            return partial(self.api.healthy, "/readyz"), "waiting for /readyz"
        if name in self._servers:
            server = LocalApi(LOOPBACK, self._servers[name], ca=self._ca)
            return partial(server.healthy, "/healthz"), "waiting for /healthz"
        node_name, _, part = name.partition("/")
        if part == "":
            return partial(self._holds_namespaces, node_name), "making namespaces"
        if part == "containerd":
            path = self._layout.node(self._index(node_name)).containerd_socket
            return partial(node.accepts_connections, path), f"waiting for {path}"
        if part == "kubelet":
            ready = partial(self._node_ready, node_name)
            return ready, f"waiting for node {node_name} to be Ready"
        raise ClusterUsageError(f"no component {name!r}")

    def _holds_namespaces(self, node_name: str) -> bool:
        try:
            init = self._processes.node_init(node_name)
        except ClusterError:
            return False
        return procfs.command_name(init) == "sleep"  # what it becomes when all is set up

    def _node_ready(self, name: str) -> bool:
        if not self._kubelet(name).healthy("/healthz"):
            return False
        document = self.api.get(f"/api/v1/nodes/{name}")
        if document is None:
            return False
        conditions = {
            one["type"]: one["status"] for one in document["status"].get("conditions", ())
        }
        taints = {one["key"] for one in document["spec"].get("taints", ())}
        return conditions.get("Ready") == "True" and _NOT_READY_TAINT not in taints

    def _kubelet(self, node_name: str) -> LocalApi:
        assert self._state.network is not None, "a cluster with nodes has a network"
        address = self._state.network.node_address(self._index(node_name))
        return driver.kubelet_api(self._layout, address, nodeconfig.KUBELET_PORT)

    def _index(self, node_name: str) -> int:
        return self._node_names().index(node_name) + 1

    def _node_names(self) -> list[str]:
        return [self._layout.node(index).name for index in range(1, self._state.nodes + 1)]

    @property
    def _ca(self) -> Path:
        return self._layout.pki / "ca.crt"
