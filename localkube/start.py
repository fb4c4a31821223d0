"""One start of a local cluster.

The order is what takes the least time: containerd and the images are made ready beside the control
plane, and only the kubelets wait for both, and the drivers for the kubelets.
"""

from __future__ import annotations

import dataclasses
import os
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kube.base.processes import identify_process
from kube.credentials import context_name
from localkube.base import ClusterAccess, Progress
from localkube.binaries import images
from localkube.binaries.versions import POD_SHELL
from localkube.component import Running
from localkube.components import Components
from localkube.controlplane import servers
from localkube.controlplane.credentials import write_credentials
from localkube.driver.spec import create_role, driver_spec
from localkube.driverprogram import DriverProgram
from localkube.layout import Layout
from localkube.node import cgroups, config, machine, network
from localkube.options import LocalOptions
from localkube.processes import deaths
from localkube.processes.supervision import Processes
from localkube.removal import reaper_spec
from localkube.state import State, free_ports, write_state


class Binaries(NamedTuple):
    """Directories: of the cluster, of kubelets of another version, of what can be upgraded to."""

    cluster: Path
    kubelet: Path | None = None
    next: Path | None = None


class Start:
    """One start of one cluster; lives as long as `LocalCluster.up` runs, under its lock."""

    def __init__(
        self, options: LocalOptions, layout: Layout, binaries: Binaries, progress: Progress
    ) -> None:
        """Prepare to start the cluster that `options` describe, with the given binaries."""
        self._options = options
        self._layout = layout
        self._processes = Processes(layout)
        self._progress = progress
        self._binaries = binaries

    def run(self) -> ClusterAccess:
        """Start everything and wait until it is usable.

        Raises ClusterError: something did not start; what had been started is left to the caller.
        """
        layout, options = self._layout, self._options
        owner = None if options.persistent else identify_process(os.getpid())
        taken_networks = network.taken_networks() if options.nodes else []
        state = State(
            name=layout.name,
            binaries=self._binaries.cluster,
            nodes=options.nodes,
            feature_gates=options.feature_gates,
            ports=free_ports(),
            network=network.choose_network(layout.token, taken_networks) if options.nodes else None,
            owner=owner,
            kubelet=self._binaries.kubelet,
            kubelet_version=options.node_kubernetes,
            next_binaries=self._binaries.next,
        )
        # Before anything runs: by this record a start that is killed half way can be removed.
        write_state(layout, state)
        if owner is not None:
            # Before the first component, so that none can outlive this program unseen.
            self._processes.start(reaper_spec(layout, owner.pid))
        write_credentials(layout, state)
        servers.write_scheduler_config(layout)
        cluster = Running(layout, state, self._processes, options.driver)
        components = Components(cluster)
        pool = ThreadPoolExecutor(max_workers=options.nodes + 3)
        try:
            runtimes = self._start_runtimes(pool, state, components)
            state = self._start_control_plane(pool, cluster, components)
            # Not earlier: containerd and its images get ready beside the control plane.
            for future in runtimes:
                future.result()
            self._start_kubelets(pool, state, components)
            if options.nodes and options.driver is not None:
                self._start_drivers(options.driver, pool, state, components)
        finally:
            # A failed start: no thread may start anything more, and waits end at once.
            self._processes.close()
            pool.shutdown(wait=True, cancel_futures=True)
        state = dataclasses.replace(state, ready=True)
        write_state(layout, state)
        return make_access(layout, state)

    def _start_control_plane(
        self, pool: ThreadPoolExecutor, cluster: Running, components: Components
    ) -> State:
        """Start it; returns the state with the version that the API server reports."""
        layout, binaries, state = self._layout, self._binaries.cluster, cluster.state
        self._progress("starting etcd")
        components.launch(servers.etcd_spec(layout, binaries, state.ports))
        self._progress("starting kube-apiserver")
        components.launch(servers.apiserver_spec(layout, binaries, state))
        # The controller manager has flags that depend on it (`controller_manager_spec`).
        document = cluster.api.get("/version")
        version = "" if document is None else str(document["gitVersion"])
        state = dataclasses.replace(state, kubernetes_version=version)
        self._progress("starting kube-controller-manager and kube-scheduler")
        specs = (
            servers.controller_manager_spec(layout, binaries, state),
            servers.scheduler_spec(layout, binaries, state),
        )
        list(pool.map(components.launch, specs))
        create_role(cluster.api)
        if (command := self._options.scheduler_command) is not None:
            self._progress("starting the other scheduler")
            components.launch(servers.other_scheduler_spec(layout, command))
        return state

    def _start_runtimes(
        self, pool: ThreadPoolExecutor, state: State, components: Components
    ) -> list[Future[None]]:
        if state.network is None:
            return []
        self._progress(
            f"starting containerd on {state.nodes} node(s); containers have no seccomp profile"
        )
        archive = self._layout.dir / "images.tar"
        driver = self._options.driver
        libraries = images.c_library() if driver is not None and driver.brings_tools else None
        images.write_archive(archive, self._binaries.cluster / POD_SHELL, libraries)
        network.create_bridge(self._layout, state.network)
        return [
            pool.submit(self._start_runtime, state, components, index, archive)
            for index in range(1, state.nodes + 1)
        ]

    def _start_runtime(
        self, state: State, components: Components, index: int, archive: Path
    ) -> None:
        layout, node = self._layout, self._layout.node(index)
        assert state.network is not None
        config.write_node_config(layout, state, index)
        cgroups.create(config.node_cgroup(layout, node))
        components.launch(machine.holder_spec(node, layout))
        init = self._processes.node_init(node.name)
        network.attach_node(layout, state.network, index, init)
        machine.prepare_mounts(node, init)
        components.launch(machine.containerd_spec(layout, state, index))
        machine.import_images(state, node, archive)

    def _start_kubelets(
        self, pool: ThreadPoolExecutor, state: State, components: Components
    ) -> None:
        if not state.nodes:
            return
        self._progress(f"starting {state.nodes} kubelet(s) and waiting until nodes are Ready")
        indexes = range(1, state.nodes + 1)
        specs = [machine.kubelet_spec(self._layout, state, index) for index in indexes]
        list(pool.map(components.launch, specs))

    def _start_drivers(
        self, driver: DriverProgram, pool: ThreadPoolExecutor, state: State, components: Components
    ) -> None:
        self._progress(f"attaching driver {driver.name}")
        indexes = range(1, state.nodes + 1)
        specs = [driver_spec(self._layout, driver, index) for index in indexes]
        list(pool.map(components.launch, specs))
        # Every five seconds the controller-manager looks for nodes that are not ready, and taints
        # them a moment later; on a busy machine one that has become Ready in between. On a tainted
        # node no device would be free.
        for index in indexes:
            components.of(f"{self._layout.node(index).name}/kubelet").wait_ready()


def make_access(layout: Layout, state: State) -> ClusterAccess:
    """Return the hand-over of a running cluster."""
    processes = Processes(layout)
    names = [record.spec.name for record in processes.records().values()]
    return ClusterAccess(
        kubeconfig=layout.kubeconfig,
        context=context_name(layout.name),
        kubernetes_version=state.kubernetes_version,
        image=images.SCENARIO_IMAGE,
        nodes=tuple(layout.node(index).name for index in range(1, state.nodes + 1)),
        component_logs={name: layout.log(name) for name in names if layout.log(name).exists()},
        versions={"runc": "without seccomp: containers have no profile"} if state.nodes else {},
        watch=partial(deaths.watch_components, processes),
    )
