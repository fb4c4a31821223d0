"""A pod's status as the kubelet writes it, from what its containers did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.targets.base import Obj
from conformance.targets.reference.clock import VirtualClock
from conformance.targets.reference.cluster import set_condition
from conformance.targets.reference.nodes.containers import CANNOT_RUN, Run, probe_of
from conformance.targets.reference.store import clone, uid_of


def build(
    pod: Obj,
    runs: Mapping[str, Run],
    *,
    problem: str,
    prepared: bool,
    terminating: bool,
    started_at: float,
    clock: VirtualClock,
) -> Obj:
    """The new ``status``.

    Args:
        pod: the pod; what others wrote into its status stays.
        runs: container name -> its latest run.
        problem: why containers do not start; empty without one.
        prepared: the pod's claims are prepared.
        terminating: the pod is being deleted.
        started_at: when the kubelet saw it first.
        clock: virtual time.
    """
    status: Obj = clone(pod["status"])
    spec = pod["spec"]
    offset = started_at - clock.now
    status.setdefault("startTime", clock.timestamp(offset))
    status.setdefault("hostIP", "192.0.2.1")
    if prepared:
        status.setdefault("podIP", f"198.51.100.{int(uid_of(pod)[:2], 16) % 254 + 1}")
    policy = "Never" if terminating else spec["restartPolicy"]
    init = [_container(item, runs, problem, prepared, clock) for item in _init(spec)]
    main = [_container(item, runs, problem, prepared, clock) for item in spec["containers"]]
    if init:
        status["initContainerStatuses"] = init
    status["containerStatuses"] = main
    status["phase"] = _phase(main, policy, terminating)
    finished = status["phase"] in {"Succeeded", "Failed"}
    initialized = all("terminated" in item["state"] or item["started"] for item in init)
    ready = bool(main) and all(item["ready"] for item in main)
    now = clock.timestamp()
    _condition(status, "PodReadyToStartContainers", prepared and not finished, now)
    _condition(status, "Initialized", initialized, now)
    reason = "PodCompleted" if finished else "ContainersNotReady"
    for name in ("ContainersReady", "Ready"):
        _condition(status, name, ready, now, "" if ready else reason)
    return status


def _init(spec: Obj) -> list[Obj]:
    found: list[Obj] = spec.get("initContainers") or []
    return found


def _phase(main: list[Obj], policy: str, terminating: bool) -> str:
    ended = [item for item in main if "terminated" in item["state"]]
    if len(ended) == len(main) and policy != "Always":
        return "Succeeded"
    if terminating and not any("running" in item["state"] for item in main):
        return "Failed"
    started = any("waiting" not in item["state"] or item["restartCount"] for item in main)
    return "Running" if started else "Pending"


def _container(
    container: Obj, runs: Mapping[str, Run], problem: str, prepared: bool, clock: VirtualClock
) -> Obj:
    run = runs.get(container["name"])
    running = run is not None and not run.has_ended(clock.now)
    image = container["image"]
    status: dict[str, Any] = {
        "name": container["name"],
        "image": image,
        "imageID": image if run else "",
        "ready": running,
        "started": running,
        "restartCount": run.restarts if run else 0,
        "state": _state(container, run, problem, prepared, clock),
    }
    return status


def _state(
    container: Obj, run: Run | None, problem: str, prepared: bool, clock: VirtualClock
) -> Obj:
    if run is None:
        waiting = {"reason": "ContainerCreating"}
        if problem:
            waiting["message"] = problem
        elif prepared and probe_of(container) is None:
            waiting = {"reason": "CreateContainerError", "message": CANNOT_RUN}
        return {"waiting": waiting}
    started = clock.timestamp(run.started_at - clock.now)
    if not run.has_ended(clock.now):
        return {"running": {"startedAt": started}}
    ended = run.ends_at if run.ends_at is not None else clock.now
    return {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": started,
            "finishedAt": clock.timestamp(ended - clock.now),
        }
    }


def _condition(status: Obj, name: str, value: bool, now: str, reason: str = "") -> None:
    condition: Obj = {"type": name, "status": "True" if value else "False", "lastProbeTime": None}
    if reason:
        condition["reason"] = reason
    set_condition(status, condition, now)
