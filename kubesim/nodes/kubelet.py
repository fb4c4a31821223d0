"""Runs the pods of one node: prepares their claims, starts containers, and cleans up after them.

A container's process is modelled (see containers.py); everything around it follows the kubelet:
no container starts before all claims of its pod are prepared, init containers run one after the
other, a deleted pod gets its grace period, and claims are unprepared after the containers stopped,
before the pod has ended (SyncTerminatingPod of pkg/kubelet/kubelet.go) or its object goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kube.observations import ContainerView
from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster, set_condition
from kubesim.nodes import containers, podstatus
from kubesim.nodes.containers import AnyCommand, ContainerRuntime, Run
from kubesim.nodes.dra_manager import DRAManager, NotPreparedError
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.podstatus import PodResources, PodRun
from kubesim.store import name_of, namespace_of, uid_of

_RETRY_SECONDS: Final = 2.0
_MAX_RETRY_SECONDS: Final = 60.0
_RESTART_SECONDS: Final = 10.0
_MAX_RESTART_SECONDS: Final = 300.0
_OWN: Final = "driver"
_TELLING_SECONDS: Final = 10.0
"""How often a driver tells the health of its devices though nothing changed: as often as ours."""

_WIPING_DELAY: Final = 30.0
"""Seconds from a driver's end until its slices are deleted (cm/dra/manager.go)."""


class Kubelet:
    """The kubelet of one node, and what it talks to there.

    Attributes:
        driver: the node's, if it has one.
        other: another one, from when it was started until it is removed.
        runtime: knows what the commands of containers do.
        runtime_runs: whether containerd can be asked; without it no pod is looked at.
        stopped_at: virtual time, None while it runs.
    """

    watches = frozenset({"Pod", "ResourceClaim"})

    def __init__(
        self,
        cluster: Cluster,
        api: ApiServer,
        node: str,
        driver: NodeDriver | None,
        make_other: Callable[[], NodeDriver] | None = None,
        runtime: ContainerRuntime | None = None,
    ) -> None:
        self.node = node
        self.runtime = runtime or AnyCommand()
        self.component = f"{node}/kubelet"
        self.driver = driver
        self.other: NodeDriver | None = None
        self.make_other = make_other
        self.runtime_runs = True
        self.stopped_at: float | None = None
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self.dra_manager = DRAManager(cluster, driver, self.component)
        self.pod_resources = PodResources(self.dra_manager)
        self.device_cgroup = containers.DeviceCgroup()
        self._wipes: dict[str, float] = {}
        self._pods: dict[str, PodRun] = {}
        self._views: dict[tuple[str, str, str], tuple[str, ContainerView]] = {}

    def observe(self, namespace: str, pod: str, container: str) -> ContainerView | None:
        """Return what a container saw in its latest run; also after its pod is gone."""
        uid, view = self._views.get((namespace, pod, container), ("", None))
        present = self._store.get("Pod", namespace, pod)
        return view if present is None or uid_of(present) == uid else None

    def sync(self) -> None:
        now = self._cluster.clock.now
        for name in [name for name, due in self._wipes.items() if now >= due]:
            del self._wipes[name]
            self.wipe_slices(name)
        if not self.runtime_runs:
            return
        all_pods = self._store.all("Pod")
        pods_of_node = {
            uid_of(pod): pod for pod in all_pods if pod["spec"].get("nodeName") == self.node
        }
        for uid, pod in pods_of_node.items():
            if uid in self._pods or not pods.is_finished(pod):
                run = self._pods.get(uid)
                if run is None:
                    run = self._pods[uid] = PodRun(pod, now)
                    # Before anything is prepared (SyncPod of pkg/kubelet/kubelet.go).
                    self._report(run)
                else:
                    run.pod = pod
                self._sync_pod(run)
        for uid, run in list(self._pods.items()):
            if uid not in pods_of_node and self._release(run):
                del self._pods[uid]

    def _sync_pod(self, run: PodRun) -> None:
        if pods.is_deleted(run.pod):
            self._terminate(run)
        elif not run.released:
            now = self._cluster.clock.now
            if run.look_at_the_time(self._cluster.clock):
                self._cluster.record_event(
                    run.pod, "Normal", "DeadlineExceeded", podstatus.OVERDUE, "kubelet"
                )
            if not run.overdue and not run.prepared and run.retry_at <= now:
                self._prepare(run)
            if podstatus.has_ended(run, now):
                self._end_sidecars(run)
                if run.retry_at <= now and run.has_stopped(now):
                    self._release(run)
            elif not run.overdue and run.prepared:
                self._run_containers(run)
            self._report(run)

    def _end_sidecars(self, run: PodRun) -> None:
        """Tell what still runs to end, once the pod's own containers have (SyncTerminatingPod)."""
        grace = run.pod["spec"].get("terminationGracePeriodSeconds", containers.TERM_SECONDS)
        run.stop(self._cluster.clock, grace)

    def _prepare(self, run: PodRun) -> None:
        try:
            self.dra_manager.prepare(run.pod)
            run.prepared = True
        except NotPreparedError as error:
            text = f"Failed to prepare dynamic resources: {error}"
            self._fail(run, "FailedPrepareDynamicResources", text)

    def _fail(self, run: PodRun, reason: str, message: str) -> None:
        delay = min(_RETRY_SECONDS * 2**run.attempts, _MAX_RETRY_SECONDS)
        run.attempts += 1
        run.retry_at = self._cluster.clock.wake_in(delay)
        self._cluster.record_event(run.pod, "Warning", reason, message, "kubelet")

    def _run_containers(self, run: PodRun) -> None:
        for container in run.pod["spec"].get("initContainers") or []:
            sidecar = container.get("restartPolicy") == "Always"
            if not self._keep_running(run, container, restarts=sidecar) and not sidecar:
                return
        for container in run.pod["spec"]["containers"]:
            restarts = run.pod["spec"]["restartPolicy"] == "Always"
            self._keep_running(run, container, restarts=restarts)

    def _keep_running(self, run: PodRun, container: Obj, *, restarts: bool) -> bool:
        """Start a container if it is time to; True when it has completed."""
        now = self._cluster.clock.now
        current = run.runs.get(container["name"])
        if current is None:
            self._start(run, container, 0)
            return False
        if current.ends_at is None or current.ends_at > now:
            return False
        if restarts:
            delay = min(_RESTART_SECONDS * 2**current.restarts, _MAX_RESTART_SECONDS)
            if now >= current.ends_at + delay:
                self._start(run, container, current.restarts + 1)
            else:
                self._cluster.clock.wake_in(current.ends_at + delay - now)
        return True

    def _start(self, run: PodRun, container: Obj, restarts: int) -> None:
        command = self.runtime.command_of(container)
        if command is None:
            return
        now = self._cluster.clock.now
        try:
            edits = self.dra_manager.resolve_edits(run.pod, container)
        except NotPreparedError as error:
            run.create_problem = str(error)
            if run.retry_at <= now:
                self._fail(run, "Failed", f"Error: {error}")
            return
        run.create_problem = ""
        view = command.view(run.pod, container, edits, self.device_cgroup)
        clock = self._cluster.clock
        ends_at = None if command.holds else clock.wake_in(containers.EXIT_SECONDS)
        run.runs[container["name"]] = Run(view, now, ends_at, restarts)
        key = (namespace_of(run.pod), name_of(run.pod), container["name"])
        self._views[key] = (uid_of(run.pod), view)
        self._cluster.note(key[0], f"kubelet {self.node}: started {key[1]}/{key[2]}")

    def _terminate(self, run: PodRun) -> None:
        """SIGTERM, the grace period, SIGKILL; then unprepare, then the object goes."""
        clock = self._cluster.clock
        grace = run.pod["metadata"].get("deletionGracePeriodSeconds", 0)
        if run.deadline is None:
            run.deadline = clock.wake_in(grace)
            run.stop(clock, grace)
        running = not run.has_stopped(clock.now)
        retries = run.retry_at > clock.now and run.problem
        if (running and clock.now < run.deadline) or retries:
            return
        released = self._release(run)
        self._report(run)
        if released and run.pod["metadata"].get("deletionGracePeriodSeconds") != 0:
            self._api.delete_stored(run.pod, 0)

    def _release(self, run: PodRun) -> bool:
        """Unprepare the claims that no other pod of the node uses.

        No event says that a driver refused (SyncTerminatingPod of pkg/kubelet/kubelet.go).
        """
        if run.released:
            return True
        try:
            self.dra_manager.unprepare(uid_of(run.pod))
        except NotPreparedError as error:
            run.problem = f"unprepare dynamic resources: {error}"
            run.retry_at = self._cluster.clock.wake_in(_RETRY_SECONDS)
            text = f"kubelet {self.node}: {name_of(run.pod)}: {run.problem}"
            self._cluster.note(namespace_of(run.pod), text)
            return False
        run.released = True
        return True

    def _report(self, run: PodRun) -> None:
        if self._store.by_uid(uid_of(run.pod)) is None:
            return
        status = podstatus.build_pod_status(
            run, self._cluster.clock, self.runtime, self._cluster.minor
        )
        for container_status, container in zip(
            status["containerStatuses"], run.pod["spec"]["containers"], strict=True
        ):
            if health := self.dra_manager.allocated_resources_status(run.pod, container):
                container_status["allocatedResourcesStatus"] = health
        if status != run.pod["status"]:
            run.pod = self._store.modify(run.pod, lambda new: new.update(status=status))

    def stop(self) -> None:
        """End the kubelet; containers run on."""
        self.stopped_at = self._cluster.clock.now

    def start(self) -> None:
        """Start again: containers and the checkpoint tell of which pods there is something left.

        The slices of the node go, for their driver might be gone
        (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go).
        """
        self.stopped_at = None
        self._wipes.clear()
        self._cluster.counts.forget(self.component)
        self.dra_manager.restart()
        users = {uid for entry in self.dra_manager.prepared.values() for uid in entry.pods}
        self._pods = {
            uid: PodRun(run.pod, run.started_at, prepared=run.prepared, runs=run.runs)
            for uid, run in self._pods.items()
            if run.prepared or uid in users
        }
        self.wipe_slices()
        node = self._store.get("Node", "", self.node)
        if node is not None:
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            now = self._cluster.clock.format_timestamp()
            self._store.modify(node, lambda new: set_condition(new["status"], ready, now))

    def stop_driver(self, role: str = _OWN) -> None:
        """End one of the node's drivers."""
        driver = self._driver_of_role(role)
        driver.stopped_at = self._cluster.clock.now
        self._wipes.setdefault(driver.name, self._cluster.clock.wake_in(_WIPING_DELAY))

    def start_driver(self, role: str = _OWN) -> None:
        """Start a driver with what it has kept, or for the first time; it registers."""
        if role != _OWN and self.other is None:
            assert self.make_other is not None
            self.other = self.make_other()
            self.dra_manager.drivers.append(self.other)
            return
        driver = self._driver_of_role(role)
        driver.restart()
        driver.stopped_at = None
        self._wipes.pop(driver.name, None)

    def _driver_of_role(self, role: str) -> NodeDriver:
        driver = self.driver if role == _OWN else self.other
        assert driver is not None
        return driver

    def remove_other(self) -> None:
        """Remove the other driver, which ended for good: what it has published goes at once."""
        if self.other is not None:
            self.wipe_slices(self.other.name)
            self.dra_manager.drivers.remove(self.other)
            self.other = None

    def register_next_driver(self) -> None:
        """Register an instance of the driver's next version, which gets all calls from now on.

        The newest instance that is connected is called (``get`` of
        pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go).
        """
        driver = self._driver_of_role(_OWN)
        driver.start_next()
        driver.stopped_at = None
        self._wipes.pop(driver.name, None)

    def lose_next_driver(self) -> None:
        """End that instance, which crashes; the one before it gets the calls again."""
        self._driver_of_role(_OWN).end_next()
        self.lose_health_stream()

    def lose_health_stream(self) -> None:
        """Forget the health of the driver's devices, for a stream of one of its instances ended.

        Also what another instance of it has told, until that tells it again (the deferred
        clearDriver in HandleWatchResourcesStream of pkg/kubelet/cm/dra/manager.go).
        """
        told_again = self._cluster.clock.wake_in(_TELLING_SECONDS)
        self.dra_manager.unheard_until[self._driver_of_role(_OWN).name] = told_again

    def switch_off(self) -> None:
        """Switch the node off: its containers go, and what its drivers have in memory."""
        now = self._cluster.clock.now
        for run in self._pods.values():
            run.prepared = False
            for current in run.runs.values():
                if not current.has_ended(now):
                    current.ends_at = now
        for driver in self.dra_manager.drivers:
            driver.reboot()

    def wipe_slices(self, driver: str = "") -> None:
        """Delete what a driver has published for the node, or what all have."""
        for item in self._store.all("ResourceSlice"):
            spec = item["spec"]
            if spec.get("nodeName") == self.node and driver in ("", spec["driver"]):
                self._api.delete_stored(item)
