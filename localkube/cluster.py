"""A local cluster as a whole: started, described, broken on purpose, removed.

This is what the package offers; how each part is done is in the other modules (start, components,
removal).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kube.base.locks import file_lock
from kube.components import REMOVE
from localkube import preflight
from localkube.base import ClusterAccess, ClusterError, ClusterUsageError, Progress, silent
from localkube.binaries.build import resolve_binaries
from localkube.binaries.versions import CONTROL_PLANE_BINARIES, NODE_BINARIES
from localkube.component import STOP_SECONDS, Running
from localkube.components import Components, Server
from localkube.driver.process import NEXT_ACTIONS, OtherDriver
from localkube.driverprogram import DriverProgram
from localkube.layout import (
    STATE_FILE,
    Layout,
    check_socket_paths,
    default_cache,
    default_root,
    make_layout,
)
from localkube.node.config import gates_of_kubelet
from localkube.options import LocalOptions
from localkube.processes import procfs
from localkube.processes.supervision import ComponentStatus, Processes
from localkube.processes.tools import find_program
from localkube.removal import find_processes, remove_cluster
from localkube.start import Binaries, Start, make_access
from localkube.state import State, read_state


class LocalCluster:
    """One cluster of real Kubernetes components on this machine (see the package's docstring)."""

    def __init__(self, options: LocalOptions) -> None:
        """Describe a cluster; nothing is started. Raises ClusterUsageError."""
        self.options = options
        self.layout: Layout = make_layout(options.name, options.state_dir)
        self._processes = Processes(self.layout)
        self._keep_logs = False  # a start failed, and what was said about it names them

    def up(self, progress: Progress = silent) -> ClusterAccess:
        """Start the cluster and wait until it is usable: nodes Ready, drivers attached.

        Raises:
            ClusterUsageError: this machine lacks something, an option is wrong, or the cluster
                runs already.
            ClusterError: a component did not start. Everything is removed again except the logs.
        """
        preflight.check_platform()
        if self.options.nodes:
            preflight.check_nodes()
        driver = self.options.driver
        if driver is not None:
            driver.check()
        if self.options.scheduler_command is not None:
            find_program(self.options.scheduler_command[0])
        check_socket_paths(self.layout, self.options.nodes, driver.name if driver else "")
        binaries = self._binaries(progress)
        gates = self.options.feature_gates
        preflight.check_feature_gates(binaries.cluster / "kube-apiserver", gates)
        if binaries.kubelet is not None:
            kubelet_gates = gates_of_kubelet(gates, self.options.node_kubernetes)
            preflight.check_feature_gates(binaries.kubelet / "kubelet", kubelet_gates)
        self._check_ours()
        with file_lock(self.layout.lock):
            self._make_room(progress)
            try:
                return Start(self.options, self.layout, binaries, progress).run()
            except BaseException as error:
                self._undo(error, progress)
                raise

    def down(self, progress: Progress = silent) -> None:
        """Stop and remove the cluster, whoever started it and however far it came.

        The logs stay where this object's `up` failed with an error that names them; the next
        cluster of that name, or another `down`, removes them.

        Raises:
            ClusterUsageError: the state directory is not a local cluster's.
            ClusterError: something is left; the message names it.
        """
        self._check_ours()
        with file_lock(self.layout.lock):
            remove_cluster(self.layout, progress, keep_logs=self._keep_logs)

    def access(self) -> ClusterAccess:
        """Return how to use this cluster, which another program may have started.

        Raises ClusterUsageError: it does not run.
        """
        state = read_state(self.layout)
        if state is None or not state.ready or not self._processes.alive("kube-apiserver"):
            raise ClusterUsageError(
                f"no local cluster named {self.layout.name!r} runs (looked in {self.layout.dir}); "
                f"start it with `dra-conformance cluster up --name {self.layout.name}`"
            )
        return make_access(self.layout, state)

    def state(self) -> State | None:
        """Return what was written down when the cluster was started; None where there is none."""
        return read_state(self.layout)

    def status(self) -> list[ComponentStatus]:
        """Return each component of the cluster; empty where there is none."""
        return self._processes.list_statuses()

    def components(self) -> list[str]:
        """Return names of what `disturb` can stop and start."""
        return self._components().names()

    def disturb(self, component: str, action: str) -> None:
        """Disturb a component; whoever starts it waits until it is ready.

        Args:
            component: for example ``node-1/kubelet``; ``node-1/node`` is the whole of a node.
            action: ``stop``, ``kill`` (SIGKILL), ``start`` (nothing if it runs), ``restart``,
                ``upgrade`` (restart as `LocalOptions.upgrade_to`), of a driver one of
                `NEXT_ACTIONS`, of a second driver `REMOVE`.

        Raises ClusterUsageError: there is no such component; ClusterError: it did not come back.
        """
        components = self._components()
        if action in NEXT_ACTIONS:
            components.driver(component).disturb_next(action)
            return
        target = components.find_component(component)
        if action == REMOVE:
            if not isinstance(target, OtherDriver):
                raise ClusterUsageError(f"{component!r} is not a second driver")
            target.remove()
            return
        if action == "upgrade":
            target.upgrade()
            return
        if action != "start":
            target.stop(0 if action == "kill" else STOP_SECONDS)
        if action in {"restart", "start"}:
            target.start()

    def set_gates(self, component: str, gates: Mapping[str, bool]) -> None:
        """Restart one of Kubernetes' components with gates beside the cluster's own; {}: only them.

        Raises ClusterUsageError: there is no such component; ClusterError: it did not come back.
        """
        self._components().find_component(component).set_gates(gates)

    def metrics(self, component: str) -> str | None:
        """Return what a component of the control plane counts, as text; None without an answer.

        Raises ClusterUsageError: there is no such component.
        """
        server = self._components().find_component(component)
        if not isinstance(server, Server) or component not in Server.ports:
            raise ClusterUsageError(f"no metrics are read of component {component!r}")
        return server.metrics()

    def peak_memory(self) -> int:
        """Return how many bytes its processes and its pods' had at most (`procfs.peak_memory`)."""
        return procfs.peak_memory(find_processes(self.layout))

    def driver_command(self) -> tuple[str, ...]:
        """Return the command that started the drivers of the running cluster; () for none."""
        for name, record in self._processes.records().items():
            if name.endswith("/driver"):
                return record.spec.command
        return ()

    def change_driver(self, driver: DriverProgram) -> None:
        """Start the drivers of a running cluster anew, with other devices, which is quick.

        ``driver``: the same driver as before, with another command.

        Raises:
            ClusterUsageError: no such cluster runs, the driver refuses what it is to show, or
                devices are in use.
            ClusterError: a driver did not attach.
        """
        self.access()
        driver.check()
        with file_lock(self.layout.lock):
            self._components(driver).change_driver(driver)

    def _binaries(self, progress: Progress) -> Binaries:
        options = self.options
        needed = CONTROL_PLANE_BINARIES + (NODE_BINARIES if options.nodes else ())

        def cached(version: str) -> Path | None:
            if not version or version == options.kubernetes:
                return None
            return resolve_binaries(None, default_cache(), needed, progress, version)

        return Binaries(
            resolve_binaries(
                options.binaries, default_cache(), needed, progress, options.kubernetes
            ),
            kubelet=cached(options.node_kubernetes),
            next=cached(options.upgrade_to),
        )

    def _components(self, driver: DriverProgram | None = None) -> Components:
        state = read_state(self.layout)
        if state is None:
            raise ClusterUsageError(f"no local cluster named {self.layout.name!r} runs")
        options = self.options
        driver = driver or options.driver
        return Components(
            Running(self.layout, state, self._processes, driver, options.other_driver)
        )

    def _make_room(self, progress: Progress) -> None:
        """Remove what a crashed start or an ended program left under this name."""
        try:
            state = read_state(self.layout)
        except ClusterError:
            state = None
        if state is not None and state.ready and not state.is_abandoned():
            raise ClusterUsageError(
                f"a local cluster named {self.layout.name!r} exists already in {self.layout.dir}; "
                f"remove it with `dra-conformance cluster down --name {self.layout.name}`, or "
                "choose another name"
            )
        if self.layout.dir.exists():
            remove_cluster(self.layout, progress, keep_logs=False)

    def _check_ours(self) -> None:
        """Never touch a directory that holds anything else: it may be somebody's home."""
        foreign = self.layout.foreign_entries()
        if foreign:
            raise ClusterUsageError(
                f"{self.layout.dir} is not the state directory of a local cluster: it contains "
                f"{', '.join(foreign[:5])}. Choose another directory"
            )

    def _undo(self, error: BaseException, progress: Progress) -> None:
        """Remove a cluster that did not start; its logs stay where they help."""
        keep = isinstance(error, ClusterError) and self.layout.logs.exists()
        self._keep_logs = keep
        try:
            remove_cluster(self.layout, progress, keep_logs=keep)
        except ClusterError as left:
            error.add_note(str(left))
            if isinstance(error, ClusterError):
                raise ClusterError(f"{error}\n{left}") from error


def stale_clusters(root: Path | None = None) -> list[LocalCluster]:
    """Return clusters whose program has ended without removing them; call `down` on each.

    ``root``: directory of state directories; None: the default one.
    """
    clusters = []
    for path in sorted((root or default_root()).glob(f"*/{STATE_FILE}")):
        layout = Layout(path.parent.name, path.parent)
        try:
            state = read_state(layout)
        except ClusterError:
            continue
        if state is not None and state.is_abandoned():
            options = LocalOptions(name=state.name, state_dir=path.parent)
            clusters.append(LocalCluster(options))
    return clusters
