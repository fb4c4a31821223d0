"""What all components of a running cluster have in common, and what they know of the cluster.

Each kind of component is a class: how to start it, when it is ready, how long it may take to end. A
start and a restart wait for the same sign, so it is written down once, there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import yaml

from localkube.api import LocalApi
from localkube.base import ClusterUsageError
from localkube.controlplane.servers import feature_gates
from localkube.driverprogram import DriverProgram
from localkube.layout import Layout, NodeLayout
from localkube.node.config import KUBELET_PORT
from localkube.processes.supervision import Processes, ProcessSpec
from localkube.state import LOOPBACK, State

READY_SECONDS = 120.0
"""Longest that a component may take. Ordinary machines need 1 to 10 s; a loaded one much more."""

STOP_SECONDS = 15.0


@dataclass(frozen=True)
class Running:
    """A running cluster.

    Attributes:
        driver: the driver of each node; None where there is none, or where it is not known.
        other_driver: a second driver that can be started on each node; None without one.
    """

    layout: Layout
    state: State
    processes: Processes
    driver: DriverProgram | None = None
    other_driver: DriverProgram | None = None

    @property
    def driver_name(self) -> str:
        """What the ResourceSlices of each node's driver carry; "" without one."""
        return self.driver.name if self.driver is not None else ""

    @cached_property
    def api(self) -> LocalApi:
        """The API server, as administrator."""
        return self.as_administrator(self.state.ports.api)

    def as_administrator(self, port: int) -> LocalApi:
        """Return the server of the control plane that listens on a port, as administrator."""
        document = yaml.safe_load(self.layout.kubeconfig.read_text())
        return self.server(port, token=document["users"][0]["user"]["token"])

    def server(self, port: int, token: str = "", client: str = "") -> LocalApi:
        """Return the server on a port of this machine, with a token or a client certificate."""
        return LocalApi(LOOPBACK, port, self.layout.pki, token=token, client=client)

    def kubelet(self, node: NodeLayout) -> LocalApi:
        """Return a node's kubelet, as the API server speaks to it."""
        assert self.state.network is not None, "a cluster with nodes has a network"
        address = self.state.network.node_address(node.index)
        return LocalApi(address, KUBELET_PORT, self.layout.pki, client="kubelet-client")

    @cached_property
    def nodes(self) -> dict[str, NodeLayout]:
        nodes = map(self.layout.node, range(1, self.state.nodes + 1))
        return {node.name: node for node in nodes}


class Component:
    """A component by its name, whether it runs or not."""

    stop_seconds = STOP_SECONDS
    """Longest that it is given to end."""
    awaited = ""
    """What `is_ready` looks for, in words."""

    def __init__(self, cluster: Running, name: str) -> None:
        self.name = name
        self.cluster = cluster
        self.processes = cluster.processes

    def spec(self) -> ProcessSpec:
        """Return how it is started: as it was before. Raises ClusterUsageError: it never was."""
        record = self.processes.records().get(self.name)
        if record is None:
            raise ClusterUsageError(f"the local cluster has never started {self.name}")
        return record.spec

    def is_ready(self) -> bool:
        raise NotImplementedError

    def wait_ready(self) -> None:
        """Wait until it does its work. Raises ClusterError."""
        purpose = f"waiting for {self.awaited}"
        self.processes.wait_ready(self.name, self.is_ready, READY_SECONDS, purpose)

    def launch(self, spec: ProcessSpec) -> None:
        """Start it in this way and wait until it is ready. Raises ClusterError."""
        self.processes.start(spec)
        self.wait_ready()

    def start(self) -> None:
        """Start it as before and wait until it is ready; nothing happens if it runs.

        Raises ClusterError: it did not come back.
        """
        if not self.processes.alive(self.name):
            self.launch(self.spec())

    def upgrade(self) -> None:
        """Start it anew as the version that the cluster can be upgraded to.

        Raises ClusterUsageError: the cluster cannot be, or it is none of Kubernetes' programs;
        ClusterError: it did not come back.
        """
        state, spec = self.cluster.state, self.spec()
        program = Path(spec.command[0])
        if state.next_binaries is None or program.parent not in {
            state.binaries,
            state.kubelet,
            state.next_binaries,
        }:
            raise ClusterUsageError(f"{self.name} cannot be upgraded in this local cluster")
        self._start_anew(spec, (str(state.next_binaries / program.name), *spec.command[1:]))

    def set_gates(self, gates: Mapping[str, bool]) -> None:
        """Start it anew with feature gates beside the cluster's own; {}: only those.

        A kubelet's flag goes before the gates of its file (cmd/kubelet/app/server.go).

        Raises ClusterError: it did not come back.
        """
        spec, all_gates = self.spec(), {**self.cluster.state.feature_gates, **gates}
        other_arguments = [
            argument for argument in spec.command if not argument.startswith("--feature-gates=")
        ]
        self._start_anew(spec, (*other_arguments, *feature_gates(self._known_gates(all_gates))))

    def _known_gates(self, gates: Mapping[str, bool]) -> Mapping[str, bool]:
        return gates

    def _start_anew(self, spec: ProcessSpec, command: tuple[str, ...]) -> None:
        self.stop(STOP_SECONDS)
        self.launch(replace(spec, command=command))

    def stop(self, grace_seconds: float) -> None:
        """End it; 0 seconds is at once."""
        longest = min(grace_seconds, self.stop_seconds)
        self.processes.stop(self.name, grace_seconds=longest)


class OfNode(Component):
    """A component of a node, for example ``node-1/kubelet``."""

    def __init__(self, cluster: Running, name: str) -> None:
        super().__init__(cluster, name)
        self.node = cluster.nodes[name.partition("/")[0]]

    @cached_property
    def kubelet(self) -> LocalApi:
        return self.cluster.kubelet(self.node)
