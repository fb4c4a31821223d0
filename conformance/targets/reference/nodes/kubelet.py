"""Runs the pods of one node: prepares their claims, starts containers, and cleans up after them.

A container's process is modelled (see containers.py); everything around it follows the kubelet:
no container starts before all claims of its pod are prepared, init containers run one after the
other, a deleted pod gets its grace period, claims are unprepared after the containers stopped,
and only then does the pod object go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from conformance.scenario.metrics import OPERATIONS
from conformance.scenario.observation import ContainerView
from conformance.targets.base import Obj
from conformance.targets.reference import pods
from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.cluster import Cluster, set_condition
from conformance.targets.reference.nodes import containers, podstatus
from conformance.targets.reference.nodes.containers import Run
from conformance.targets.reference.nodes.dra_manager import DRAManager, NotPreparedError
from conformance.targets.reference.nodes.driver import NodeDriver
from conformance.targets.reference.nodes.podresources import PodResources
from conformance.targets.reference.store import name_of, namespace_of, uid_of

_RETRY_SECONDS: Final = 2.0
_MAX_RETRY_SECONDS: Final = 60.0
_RESTART_SECONDS: Final = 10.0
_MAX_RESTART_SECONDS: Final = 300.0
_WIPING_DELAY: Final = 30.0
"""Seconds from a driver's end until its slices are deleted (cm/dra/manager.go)."""


@dataclass(slots=True)
class PodRun:
    """What the kubelet knows of a pod.

    Attributes:
        pod: as seen last.
        prepared: its claims are.
        problem: why it does not get on, empty if it does.
        retry_at: virtual time of the next attempt.
        runs: container name -> its latest run.
        deadline: virtual time at which containers are killed, None if not deleted.
    """

    pod: Obj
    started_at: float
    prepared: bool = False
    problem: str = ""
    attempts: int = 0
    retry_at: float = 0.0
    runs: dict[str, Run] = field(default_factory=dict)
    deadline: float | None = None
    released: bool = False


class Kubelet:
    """The kubelet of one node, and what it talks to there.

    Attributes:
        component: its name among the components.
        driver: the node's, if it has one.
        other: another one, from when it was started until it is removed.
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
    ) -> None:
        self.node = node
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
        self._pods: dict[str, PodRun] = {}
        self._views: dict[tuple[str, str, str], tuple[str, ContainerView]] = {}

    def observe(self, namespace: str, pod: str, container: str) -> ContainerView | None:
        """What a container saw in its latest run; also after its pod is gone."""
        uid, seen = self._views.get((namespace, pod, container), ("", None))
        present = self._store.get("Pod", namespace, pod)
        return seen if present is None or uid_of(present) == uid else None

    def sync(self) -> None:
        """One round over the node's pods."""
        now = self._cluster.clock.now
        for driver in self.dra_manager.drivers:
            if driver.stopped_at is not None and now >= driver.stopped_at + _WIPING_DELAY:
                self.wipe_slices(driver.name)
        if not self.runtime_runs:
            return
        present = set()
        for pod in self._store.all("Pod"):
            if pod["spec"].get("nodeName") != self.node:
                continue
            present.add(uid_of(pod))
            run = self._pods.get(uid_of(pod))
            if run is None:
                if pods.is_finished(pod):
                    continue
                run = self._pods[uid_of(pod)] = PodRun(pod, now)
            run.pod = pod
            self._sync_pod(run)
        for uid, run in list(self._pods.items()):
            if uid not in present and self._release(run):
                del self._pods[uid]

    def _sync_pod(self, run: PodRun) -> None:
        if pods.is_deleted(run.pod):
            self._terminate(run)
            return
        if run.released:
            return
        if not run.prepared and run.retry_at <= self._cluster.clock.now:
            self._prepare(run)
        if run.prepared:
            self._run_containers(run)
        self._report(run)
        if pods.is_finished(run.pod):
            self._release(run)

    def _prepare(self, run: PodRun) -> None:
        try:
            self.dra_manager.prepare(run.pod)
            run.prepared, run.problem = True, ""
            self._count("PrepareResources", failed=False)
        except NotPreparedError as error:
            self._count("PrepareResources", failed=True)
            self._fail(
                run,
                "FailedPrepareDynamicResources",
                f"Failed to prepare dynamic resources: {error}",
            )

    def _count(self, operation: str, *, failed: bool) -> None:
        """Of pods without claims too (PrepareResources of pkg/kubelet/cm/dra/manager.go)."""
        is_error = str(failed).lower()
        self._cluster.counts.count(
            self.component, OPERATIONS, operation_name=operation, is_error=is_error
        )

    def _fail(self, run: PodRun, reason: str, message: str) -> None:
        run.problem = message
        delay = min(_RETRY_SECONDS * 2**run.attempts, _MAX_RETRY_SECONDS)
        run.attempts += 1
        run.retry_at = self._cluster.clock.wake_in(delay)
        self._cluster.event(run.pod, "Warning", reason, message, "kubelet")

    def _run_containers(self, run: PodRun) -> None:
        for container in run.pod["spec"].get("initContainers") or []:
            sidecar = container.get("restartPolicy") == "Always"
            if not self._keep_running(run, container, sidecar=sidecar) and not sidecar:
                return
        for container in run.pod["spec"]["containers"]:
            self._keep_running(run, container, sidecar=False)

    def _keep_running(self, run: PodRun, container: Obj, *, sidecar: bool) -> bool:
        """Start a container if it is time to; True when it has completed."""
        now = self._cluster.clock.now
        current = run.runs.get(container["name"])
        if current is None:
            self._start(run, container, 0)
            return False
        if not current.has_ended(now):
            return False
        is_init = container in (run.pod["spec"].get("initContainers") or [])
        if sidecar or (not is_init and run.pod["spec"]["restartPolicy"] == "Always"):
            delay = min(_RESTART_SECONDS * 2**current.restarts, _MAX_RESTART_SECONDS)
            ended = now if current.ends_at is None else current.ends_at
            if now >= ended + delay:
                self._start(run, container, current.restarts + 1)
            else:
                self._cluster.clock.wake_in(ended + delay - now)
        return True

    def _start(self, run: PodRun, container: Obj, restarts: int) -> None:
        probe = containers.probe_of(container)
        if probe is None:
            return
        now = self._cluster.clock.now
        try:
            edits = self.dra_manager.edits(run.pod, container)
        except NotPreparedError as error:
            if run.retry_at <= now:
                self._fail(run, "Failed", f"Error: {error}")
            return
        seen = containers.view(run.pod, container, edits, probe, self.device_cgroup)
        ends_at = None
        if not probe.holds:
            ends_at = self._cluster.clock.wake_in(containers.EXIT_SECONDS)
        run.runs[container["name"]] = Run(probe, seen, now, ends_at, restarts)
        key = (namespace_of(run.pod), name_of(run.pod), container["name"])
        self._views[key] = (uid_of(run.pod), seen)
        self._cluster.note(key[0], f"kubelet {self.node}: started {key[1]}/{key[2]}")

    def _terminate(self, run: PodRun) -> None:
        """SIGTERM, the grace period, SIGKILL; then unprepare, then the object goes."""
        clock = self._cluster.clock
        grace = run.pod["metadata"].get("deletionGracePeriodSeconds", 0)
        if run.deadline is None:
            run.deadline = clock.wake_in(grace)
            for current in run.runs.values():
                if current.ends_at is None:
                    current.ends_at = clock.wake_in(min(containers.TERM_SECONDS, grace))
        running = any(not current.has_ended(clock.now) for current in run.runs.values())
        if running and clock.now < run.deadline:
            return
        if run.retry_at > clock.now and run.problem.startswith("unprepare"):
            return
        if self._release(run):
            self._report(run)
            if run.pod["metadata"].get("deletionGracePeriodSeconds") != 0:
                self._api.delete_stored(run.pod, 0)

    def _release(self, run: PodRun) -> bool:
        """Unprepare the claims that no other pod of the node uses."""
        if run.released:
            return True
        try:
            self.dra_manager.unprepare(uid_of(run.pod))
            self._count("UnprepareResources", failed=False)
        except NotPreparedError as error:
            self._count("UnprepareResources", failed=True)
            run.problem = f"unprepare dynamic resources: {error}"
            run.retry_at = self._cluster.clock.wake_in(_RETRY_SECONDS)
            text = f"kubelet {self.node}: {name_of(run.pod)}: {run.problem}"
            self._cluster.note(namespace_of(run.pod), text)
            return False
        run.released = True
        return True

    def _report(self, run: PodRun) -> None:
        """Write the pod's status."""
        if self._store.by_uid(uid_of(run.pod)) is None:
            return
        status = podstatus.build(
            run.pod,
            run.runs,
            problem=run.problem,
            prepared=run.prepared,
            terminating=run.deadline is not None,
            started_at=run.started_at,
            clock=self._cluster.clock,
        )
        for found, container in zip(
            status["containerStatuses"], run.pod["spec"]["containers"], strict=True
        ):
            if health := self.dra_manager.allocated_resources_status(run.pod, container):
                found["allocatedResourcesStatus"] = health
        if status != run.pod["status"]:
            run.pod = self._store.modify(run.pod, lambda new: new.update(status=status))

    def stop(self) -> None:
        """End; containers run on."""
        self.stopped_at = self._cluster.clock.now

    def start(self) -> None:
        """Start again: containers and the checkpoint tell of which pods there is something left.

        The slices of the node go, for their driver might be gone
        (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go).
        """
        self.stopped_at = None
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
            self._store.modify(node, self._ready)

    def stop_driver(self) -> None:
        """The node's driver ends."""
        assert self.driver is not None
        self._stop(self.driver)

    def start_driver(self) -> None:
        """It starts again, with what it has kept, and registers."""
        assert self.driver is not None
        _start_again(self.driver)

    def stop_other(self) -> None:
        """The node's other driver ends."""
        assert self.other is not None
        self._stop(self.other)

    def start_other(self) -> None:
        """It starts for the first time or again, and registers."""
        if self.other is not None:
            _start_again(self.other)
            return
        assert self.make_other is not None
        self.other = self.make_other()
        self.dra_manager.drivers.append(self.other)

    def remove_other(self) -> None:
        """It ended for good: what it has published goes at once."""
        assert self.other is not None
        self.wipe_slices(self.other.name)
        self.dra_manager.drivers.remove(self.other)
        self.other = None

    def _stop(self, driver: NodeDriver) -> None:
        driver.stopped_at = self._cluster.clock.now
        self._cluster.clock.wake_in(_WIPING_DELAY)

    def register_next_driver(self) -> None:
        """An instance of its next version registers, and is asked from now on.

        Of several the newest is asked that can be (``get`` of
        pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go).
        """
        assert self.driver is not None
        self.driver.start_next()
        self.driver.stopped_at = None

    def lose_next_driver(self) -> None:
        """That instance crashes, and the one before it is asked again."""
        assert self.driver is not None
        self.driver.end_next()

    def switch_off(self) -> None:
        """The node loses its containers, and what its drivers have in memory."""
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

    def _ready(self, node: Obj) -> None:
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        set_condition(node["status"], condition, self._cluster.clock.timestamp())

    def running(self) -> Iterator[str]:
        """Names of pods with running containers, for diagnostics."""
        for run in self._pods.values():
            if any(not item.has_ended(self._cluster.clock.now) for item in run.runs.values()):
                yield f"{namespace_of(run.pod)}/{name_of(run.pod)}"


def _start_again(driver: NodeDriver) -> None:
    driver.restart()
    driver.stopped_at = None
