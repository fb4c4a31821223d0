"""What a kubelet says of its pods: their status, and the devices of their containers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kube.observations import ListedClaim, ListedDevice
from kube.values import Obj
from kubesim import pods
from kubesim.clock import VirtualClock
from kubesim.cluster import set_condition
from kubesim.nodes.containers import TERM_SECONDS, ContainerRuntime, Run
from kubesim.nodes.dra_manager import DRAManager
from kubesim.nodes.podconditions import list_conditions
from kubesim.store import clone, name_of, namespace_of, uid_of

OVERDUE: Final = "Pod was active on the node longer than the specified deadline"
"""What is said of a pod that ran for too long (pkg/kubelet/active_deadline.go)."""

_NEVER_RAN: Final = {
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
    "exitCode": 137,
}
"""State of a container that had none when its pod was terminated (TerminatePod of
pkg/kubelet/status/status_manager.go); only of pods that were initialized."""


@dataclass(slots=True)
class PodRun:
    """What the kubelet knows of a pod.

    Attributes:
        problem: why it cannot be unprepared, empty if it can.
        create_problem: why a container cannot be created, empty if all can.
        retry_at: virtual time of the next attempt.
        runs: container name -> its latest run.
        deadline: virtual time at which containers are killed, None if not deleted.
        overdue: it has run for longer than its ``activeDeadlineSeconds``.
    """

    pod: Obj
    started_at: float
    prepared: bool = False
    problem: str = ""
    create_problem: str = ""
    attempts: int = 0
    retry_at: float = 0.0
    runs: dict[str, Run] = field(default_factory=dict)
    deadline: float | None = None
    released: bool = False
    overdue: bool = False

    def look_at_the_time(self, clock: VirtualClock) -> bool:
        """Stop the containers once the pod has run for as long as it may; True when it just has."""
        limit = self.pod["spec"].get("activeDeadlineSeconds")
        if limit is None or self.overdue:
            return False
        remaining_seconds = self.started_at + limit - clock.now
        if remaining_seconds > 0:
            clock.wake_in(remaining_seconds)
            return False
        self.overdue = True
        self.stop(clock, self.pod["spec"].get("terminationGracePeriodSeconds", TERM_SECONDS))
        return True

    def has_stopped(self, now: float) -> bool:
        """Return whether no container runs."""
        return all(current.has_ended(now) for current in self.runs.values())

    def stop(self, clock: VirtualClock, grace: float) -> None:
        """Tell all containers to end, after their hook ``preStop`` has slept."""
        for container in pods.list_containers(self.pod["spec"]):
            current = self.runs.get(container["name"])
            if current is not None and current.ends_at is None:
                hook = (container.get("lifecycle") or {}).get("preStop") or {}
                sleeps = float((hook.get("sleep") or {}).get("seconds", 0))
                current.ends_at = clock.wake_in(min(sleeps + TERM_SECONDS, grace))


def has_ended(run: PodRun, now: float) -> bool:
    """Return whether all containers of a pod have ended for good."""
    spec = run.pod["spec"]
    if run.overdue:
        return run.has_stopped(now)
    runs = [run.runs.get(container["name"]) for container in spec["containers"]]
    all_ended = all(
        container_run is not None and container_run.has_ended(now) for container_run in runs
    )
    return all_ended and spec["restartPolicy"] != "Always"


def build_pod_status(
    run: PodRun, clock: VirtualClock, runtime: ContainerRuntime, minor: str
) -> Obj:
    """Return the new ``status`` by a kubelet of a minor; what others wrote into it stays.

    A pod has not ended before its claims are unprepared (pkg/kubelet/status/status_manager.go,
    mergePodStatus).
    """
    status: Obj = clone(run.pod["status"])
    spec, terminating = run.pod["spec"], run.deadline is not None
    status.setdefault("startTime", clock.format_timestamp(run.started_at - clock.now))
    status.setdefault("hostIP", "192.0.2.1")
    if run.prepared:
        status.setdefault("podIP", f"198.51.100.{int(uid_of(run.pod)[:2], 16) % 254 + 1}")
    policy = "Never" if terminating or run.overdue else spec["restartPolicy"]
    init = [
        _build_container_status(item, run, clock, runtime)
        for item in spec.get("initContainers") or []
    ]
    main = [_build_container_status(item, run, clock, runtime) for item in spec["containers"]]
    if init:
        status["initContainerStatuses"] = init
    status["containerStatuses"] = main
    status["phase"] = _compute_phase(main, policy, terminating or run.overdue)
    finished = status["phase"] in {"Succeeded", "Failed"}
    if finished and not run.released:
        status["phase"] = "Running"
    elif finished and run.overdue:
        status |= {"phase": "Failed", "reason": "DeadlineExceeded", "message": OVERDUE}
    now = clock.format_timestamp()
    for condition in list_conditions(
        spec, status, prepared=run.prepared, released=run.released, minor=minor
    ):
        set_condition(status, condition, now)
    if terminating and run.released and status["phase"] == "Pending":
        # The last word on a pod that never ran does not change its conditions.
        status["phase"] = "Failed"
        if not init:
            for item in main:
                item["state"] = {"terminated": dict(_NEVER_RAN)}
    return status


def _compute_phase(main: list[Obj], policy: str, terminating: bool) -> str:
    ended = [item for item in main if "terminated" in item["state"]]
    if len(ended) == len(main) and policy != "Always":
        failed = any(item["state"]["terminated"]["exitCode"] for item in ended)
        return "Failed" if failed else "Succeeded"
    started = any("waiting" not in item["state"] or item["restartCount"] for item in main)
    if started and terminating and not any("running" in item["state"] for item in main):
        return "Failed"
    return "Running" if started else "Pending"


def _build_container_status(
    container: Obj, pod: PodRun, clock: VirtualClock, runtime: ContainerRuntime
) -> Obj:
    run = pod.runs.get(container["name"])
    running = run is not None and not run.has_ended(clock.now)
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": container["image"] if run else "",
        "ready": running,
        "started": running,
        "restartCount": run.restarts if run else 0,
        "state": _build_waiting_state(container, pod, runtime)
        if run is None
        else _build_run_state(run, clock),
    }


def _build_waiting_state(container: Obj, pod: PodRun, runtime: ContainerRuntime) -> Obj:
    problem = pod.create_problem
    if pod.prepared and runtime.command_of(container) is None:
        problem = runtime.cannot_run
    if problem:
        return {"waiting": {"reason": "CreateContainerError", "message": problem}}
    # Also where claims cannot be prepared: why, only an event says.
    initializing = bool(pod.pod["spec"].get("initContainers"))
    return {"waiting": {"reason": "PodInitializing" if initializing else "ContainerCreating"}}


def _build_run_state(run: Run, clock: VirtualClock) -> Obj:
    started = clock.format_timestamp(run.started_at - clock.now)
    if not run.has_ended(clock.now):
        return {"running": {"startedAt": started}}
    ended = run.ends_at if run.ends_at is not None else clock.now
    return {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": started,
            "finishedAt": clock.format_timestamp(ended - clock.now),
        }
    }


class PodResources:
    """What one kubelet lists by its PodResources API.

    Of pods that have not ended, without init containers that end, the claims that a container
    names, each as a whole; none of a container if one of them is not known yet
    (pkg/kubelet/apis/podresources/server_v1.go; GetContainerClaimInfos in
    pkg/kubelet/cm/dra/manager.go).
    """

    def __init__(self, manager: DRAManager) -> None:
        self._manager = manager

    def list_claims(self, pod: Obj, container: str) -> Sequence[ListedClaim] | None:
        """Return the claims of a container of a pod of the node; None: it is not listed."""
        spec = pod["spec"]
        sidecars = [
            listed_container
            for listed_container in spec.get("initContainers") or []
            if listed_container.get("restartPolicy") == "Always"
        ]
        for listed_container in (*sidecars, *spec["containers"]):
            if listed_container["name"] == container and not pods.is_finished(pod):
                claims = self.claims_of(pod, listed_container)
                all_prepared = all(uid_of(claim) in self._manager.prepared for claim in claims)
                return [self._claim(claim) for claim in claims] if all_prepared else []
        return None

    def claims_of(self, pod: Obj, container: Obj) -> list[Obj]:
        """Return the claims that a container names, or has for extended resources."""
        named = {entry["name"] for entry in (container.get("resources") or {}).get("claims") or []}
        special = pod["status"].get("extendedResourceClaimStatus") or {}
        mappings = special.get("requestMappings") or []
        if any(entry["containerName"] == container["name"] for entry in mappings):
            named.add("")
        claims = self._manager.claims_of(pod)
        return [claim for name, claim in claims if claim is not None and name in named]

    def _claim(self, claim: Obj) -> ListedClaim:
        devices = tuple(
            ListedDevice(
                driver,
                device.pool_name,
                device.device_name,
                tuple(device.cdi_device_ids),
                device.share_id or "",
            )
            for driver, prepared_devices in self._manager.prepared[uid_of(claim)].devices.items()
            for device in prepared_devices
        )
        return ListedClaim(namespace_of(claim), name_of(claim), devices)
