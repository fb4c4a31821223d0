"""Objects as rows of a table, which ``kubectl get`` prints (``meta.k8s.io/v1`` Table).

Columns and cells are those of pkg/printers/internalversion/printers.go, ages those of
apimachinery's pkg/util/duration. Descriptions of columns are left empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kube.values import Obj

_Age = Callable[[str], str]
"""How long ago a timestamp was."""

_Cells = Callable[[Obj, _Age], Sequence[Any]]


def claim_state(claim: Obj) -> str:
    """Return what a claim is at the moment: pending, allocated, reserved, deleted."""
    status = claim.get("status") or {}
    deleted, allocated = "deletionTimestamp" in claim["metadata"], "allocation" in status
    states = {
        "deleted": deleted,
        "pending": not allocated and not deleted,
        "allocated": allocated,
        "reserved": allocated and bool(status.get("reservedFor")),
    }
    return ",".join(name for name, so in states.items() if so)


def _slice_cells(item: Obj, _age: _Age) -> Sequence[Any]:
    spec = item["spec"]
    return spec.get("nodeName") or "", spec["driver"], spec["pool"]["name"]


def _rule_cells(rule: Obj, age: _Age) -> Sequence[Any]:
    taint = rule["spec"]["taint"]
    added = age(taint["timeAdded"]) if "timeAdded" in taint else ""
    return taint["key"], taint.get("value") or "", taint["effect"], added


def _pool_status_cells(request: Obj, age: _Age) -> Sequence[Any]:
    status = request.get("status")
    driver, pools = request["spec"]["driver"], (status or {}).get("pools") or []
    count, conditions = (status or {}).get("poolCount") or 0, (status or {}).get("conditions") or []
    ends = [c for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True"]
    end = ends[0] if ends else {"type": "Pending"}
    numbers = ["-"] * 5
    if status is not None and end["type"] != "Failed":
        fields = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
        numbers = [str(sum(pool.get(field) or 0 for pool in pools)) for field in fields]
        numbers.append(str(sum("validationError" in pool for pool in pools)))
    is_complete = end["type"] == "Complete"
    state = end["type"]
    if is_complete and count > len(pools):
        state = f"Complete ({len(pools)}/{count} pools)"
    completed = age(end.get("lastTransitionTime") or "") if is_complete else "<none>"
    return driver, *numbers, count, state, completed


def _pod_cells(pod: Obj, age: _Age) -> Sequence[Any]:
    spec, status = pod["spec"], pod.get("status") or {}
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    containers = status.get("containerStatuses") or []
    ready = sum(bool(c.get("ready")) for c in _started_containers(status, sidecars))
    restarts = sum(c.get("restartCount", 0) for c in containers)
    addresses = status.get("podIPs") or [{}]
    return (
        f"{ready}/{len(spec['containers']) + len(sidecars)}",
        _explain_pod(pod),
        str(restarts),
        age(pod["metadata"]["creationTimestamp"]),
        addresses[0].get("ip") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        "<none>",
    )


def _started_containers(status: Obj, sidecars: Sequence[Obj]) -> list[Obj]:
    names = {sidecar["name"] for sidecar in sidecars}
    started = [c for c in status.get("initContainerStatuses") or () if c["name"] in names]
    return [*started, *(status.get("containerStatuses") or ())]


def _explain_pod(pod: Obj) -> str:
    """Return the status of a pod in a word (``printPod``)."""
    status = pod.get("status") or {}
    reason: str = status.get("reason") or status.get("phase") or ""
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    runs, failure = False, ""
    initial = _explain_initialization(pod)
    for container in () if initial else reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif ended := state.get("terminated"):
            reason = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
            failure = reason if ended.get("exitCode") else failure
        else:
            runs = runs or (bool(container.get("ready")) and "running" in state)
    if reason == "Completed":
        is_ready = conditions.get("Ready", {}).get("status") == "True"
        reason = "Running" if runs and is_ready else failure or ("NotReady" if runs else reason)
    is_ended = status.get("phase") in ("Succeeded", "Failed")
    if "deletionTimestamp" in pod["metadata"] and not is_ended:
        return "Terminating"
    return initial or reason


def _explain_initialization(pod: Obj) -> str:
    """Return which init container a pod is at; empty where it is past them."""
    init_containers = {c["name"]: c for c in pod["spec"].get("initContainers") or ()}
    for index, container in enumerate((pod.get("status") or {}).get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        ended = state.get("terminated")
        is_sidecar = init_containers[container["name"]].get("restartPolicy") == "Always"
        if (ended and not ended.get("exitCode")) or (is_sidecar and container.get("started")):
            continue
        if ended:
            return f"Init:{ended.get('reason') or 'ExitCode:' + str(ended['exitCode'])}"
        waiting = (state.get("waiting") or {}).get("reason") or "PodInitializing"
        is_told = waiting != "PodInitializing"
        return f"Init:{waiting}" if is_told else f"Init:{index}/{len(init_containers)}"
    return ""


def _node_cells(node: Obj, age: _Age) -> Sequence[Any]:
    status, info = node.get("status") or {}, (node.get("status") or {}).get("nodeInfo") or {}
    ready = [c for c in status.get("conditions") or () if c["type"] == "Ready"]
    words = ["Ready" if c["status"] == "True" else "NotReady" for c in ready] or ["Unknown"]
    words += ["SchedulingDisabled"] if (node.get("spec") or {}).get("unschedulable") else []
    labels = node["metadata"].get("labels") or {}
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)} - {""}
    addresses = {a["type"]: a["address"] for a in reversed(status.get("addresses") or [])}
    machine = f" ({info['architecture']})" if info.get("architecture") else ""
    return (
        ",".join(words),
        ",".join(sorted(roles)) or "<none>",
        age(node["metadata"]["creationTimestamp"]),
        info.get("kubeletVersion") or "",
        *(addresses.get(kind, "<none>") for kind in ("InternalIP", "ExternalIP")),
        info.get("osImage") or "<unknown>",
        (info.get("kernelVersion") or "<unknown>") + machine,
        info.get("containerRuntimeVersion") or "<unknown>",
    )


def _event_cells(event: Obj, age: _Age) -> Sequence[Any]:
    target, source = event.get("involvedObject") or {}, event.get("source") or {}
    first_time = event.get("firstTimestamp") or event.get("eventTime")
    last_time = event.get("lastTimestamp") or first_time
    place = "/".join([(target.get("kind") or "").lower(), *filter(None, [target.get("name")])])
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance")
    return (
        age(last_time) if last_time else "<unknown>",
        event.get("type") or "",
        event.get("reason") or "",
        place,
        target.get("fieldPath") or "",
        f"{component}, {host}" if host else component,
        (event.get("message") or "").strip(),
        age(first_time) if first_time else "<unknown>",
        event.get("count") or 1,
        event["metadata"]["name"],
    )


def _job_cells(job: Obj, age: _Age) -> Sequence[Any]:
    spec, status = job["spec"], job.get("status") or {}
    true_conditions = {c["type"] for c in status.get("conditions") or () if c["status"] == "True"}
    words = {
        "Complete": "Complete" in true_conditions,
        "Failed": "Failed" in true_conditions,
        "Terminating": "deletionTimestamp" in job["metadata"],
        **{
            name: name in true_conditions
            for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet")
        },
        "Running": True,
    }
    done, parallelism = status.get("succeeded") or 0, spec.get("parallelism") or 0
    wanted = spec.get("completions")
    of_many = f" of {parallelism}" if wanted is None and parallelism > 1 else ""
    return (
        next(word for word, holds in words.items() if holds),
        f"{done}/{1 if wanted is None else wanted}{of_many}",
        age(status["startTime"]) if "startTime" in status else "",
        age(job["metadata"]["creationTimestamp"]),
        *_container_cells(job),
    )


def _container_cells(workload: Obj) -> tuple[str, str, str]:
    """Return names and images of a workload's containers, and its selector."""
    containers = workload["spec"]["template"]["spec"]["containers"]
    columns = (",".join(c.get(field) or "" for c in containers) for field in ("name", "image"))
    selector = (workload["spec"].get("selector") or {}).get("matchLabels") or {}
    labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return (*columns, labels or "<none>")  # type: ignore[return-value]


def _count_cells(*fields: str) -> Callable[[Obj], list[int]]:
    return lambda obj: [(obj.get("status") or {}).get(field) or 0 for field in fields]


def _workload_cells(kind: str) -> _Cells:
    """Return what makes the cells of a Deployment, DaemonSet, ReplicaSet or StatefulSet."""
    scheduled = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")

    def cells(obj: Obj, age: _Age) -> Sequence[Any]:
        status, replicas = obj.get("status") or {}, obj["spec"].get("replicas", 1)
        ready = status.get("readyReplicas") or 0
        created, containers = age(obj["metadata"]["creationTimestamp"]), _container_cells(obj)
        match kind:
            case "Deployment":
                counts = _count_cells("updatedReplicas", "availableReplicas")(obj)
                return f"{ready}/{replicas}", *counts, created, *containers
            case "StatefulSet":
                return f"{ready}/{replicas}", created, *containers[:2]
            case "ReplicaSet":
                counts = _count_cells("replicas", "readyReplicas")(obj)
                return replicas, *counts, created, *containers
        counts = _count_cells(*scheduled, "updatedNumberScheduled", "numberAvailable")(obj)
        nodes = obj["spec"]["template"]["spec"].get("nodeSelector") or {}
        labels = ",".join(f"{key}={value}" for key, value in sorted(nodes.items())) or "<none>"
        return *counts, labels, created, *containers

    return cells


def _quota_cells(quota: Obj, _age: _Age) -> Sequence[Any]:
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    texts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in texts.items() if name.startswith("limits.")]
    return ", ".join(text for text in texts.values() if text not in limits), ", ".join(limits)


def _priority_cells(priority: Obj, age: _Age) -> Sequence[Any]:
    created = age(priority["metadata"]["creationTimestamp"])
    policy = priority.get("preemptionPolicy") or ""
    return priority.get("value", 0), bool(priority.get("globalDefault")), created, policy


def _group_cells(group: Obj, _age: _Age) -> Sequence[Any]:
    spec, status = group["spec"], "Pending"
    conditions = {c["type"]: c for c in (group.get("status") or {}).get("conditions") or ()}
    if scheduled := conditions.get("PodGroupInitiallyScheduled"):
        status = "Scheduled" if scheduled["status"] == "True" else "Unschedulable"
    if disrupted := conditions.get("DisruptionTarget"):
        status = disrupted["reason"]
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") else "Basic"
    return policy, (spec.get("workloadRef") or {}).get("workloadName") or "<none>", status


_SYSTEM: Final = "OS-Image+ Kernel-Version+ Container-Runtime+"
_CONTAINERS: Final = "Containers+ Images+ Selector+"
_COLUMNS: Final[Mapping[str, tuple[str, _Cells]]] = {
    "DaemonSet": (
        "Desired# Current# Ready# Up-to-date# Available# Node_Selector Age " + _CONTAINERS,
        _workload_cells("DaemonSet"),
    ),
    "Deployment": (
        f"Ready Up-to-date Available Age {_CONTAINERS}",
        _workload_cells("Deployment"),
    ),
    "DeviceTaintRule": ("Key Value Effect TimeAdded", _rule_cells),
    "Event": (
        "Last_Seen Type Reason Object Subobject+ Source+ Message First_Seen+ Count+ Name+",
        _event_cells,
    ),
    "Job": (f"Status Completions Duration Age {_CONTAINERS}", _job_cells),
    "Namespace": ("Status", lambda obj, _age: ((obj.get("status") or {}).get("phase") or "",)),
    "Node": (
        f"Status Roles Age Version Internal-IP+ External-IP+ {_SYSTEM}",
        _node_cells,
    ),
    "Pod": (
        "Ready Status Restarts Age IP+ Node+ Nominated_Node+ Readiness_Gates+",
        _pod_cells,
    ),
    "PodGroup": ("Policy Workload Status", _group_cells),
    "PriorityClass": ("Value# Global-Default? Age PreemptionPolicy", _priority_cells),
    "ReplicaSet": (f"Desired# Current# Ready# Age {_CONTAINERS}", _workload_cells("ReplicaSet")),
    "ResourceClaim": ("State", lambda claim, _age: (claim_state(claim),)),
    "ResourcePoolStatusRequest": (
        "Driver Total Available Allocated Unavailable Errors Pools# Status Completed",
        _pool_status_cells,
    ),
    "ResourceQuota": ("Request Limit", _quota_cells),
    "ResourceSlice": ("Node Driver Pool", _slice_cells),
    "StatefulSet": ("Ready Age Containers+ Images+", _workload_cells("StatefulSet")),
}
"""Kind -> its columns, and what makes their cells.

A column that kubectl shows only with ``-o wide`` ends with ``+``, of numbers with ``#``, of truth
values with ``?``. The name comes first and the age last, where they are not among the columns.
"""

_WITHOUT_AGE: Final = ("Event", "ResourcePoolStatusRequest")
_TYPES: Final = {"#": "integer", "?": "boolean"}


def build_table(
    kind: str, objects: Sequence[Obj], age_of: Callable[[str], int], metadata: Obj
) -> Obj:
    """Return the Table of some objects of a kind.

    Args:
        age_of: how many seconds ago a timestamp was.
        metadata: of the list.
    """
    text, cells = _COLUMNS.get(kind, ("", lambda _, _age: ()))
    marked_names = text.split()
    names = [name.strip("+#?") for name in marked_names]
    has_name, has_age = "Name" in names, "Age" in names or kind in _WITHOUT_AGE

    def age(timestamp: str) -> str:
        return human_duration(age_of(timestamp)) if timestamp else "<unknown>"

    def row(obj: Obj) -> Obj:
        first_cells = () if has_name else (obj["metadata"].get("name", ""),)  # none of a bookmark
        last_cells = () if has_age else (age(obj["metadata"].get("creationTimestamp", "")),)
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        shown = {**partial, "metadata": obj["metadata"]}
        return {"cells": [*first_cells, *cells(obj, age), *last_cells], "object": shown}

    first_names = () if has_name else ("Name",)
    last_names = () if has_age else ("Age",)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": name.strip("+#?").replace("_", " "),
                "type": _TYPES.get(name[-1], "string"),
                "format": "name" if name.strip("+") == "Name" else "",
                "description": "",
                "priority": int(name.endswith("+")),
            }
            for name in (*first_names, *marked_names, *last_names)
        ],
        "rows": [row(obj) for obj in objects],
    }


def human_duration(seconds: int) -> str:
    """Return seconds as far as a person wants to know them (duration.HumanDuration)."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    for under, whole, remainder, unit in (
        (600, minutes, seconds % 60, "ms"),
        (3 * 3600, minutes, 0, "m"),
        (8 * 3600, hours, minutes % 60, "hm"),
        (2 * 86400, hours, 0, "h"),
        (8 * 86400, days, hours % 24, "dh"),
        (2 * 365 * 86400, days, 0, "d"),
        (8 * 365 * 86400, days // 365, days % 365, "yd"),
    ):
        if seconds < under:
            return f"{whole}{unit[0]}" + (f"{remainder}{unit[1]}" if remainder else "")
    return f"{days // 365}y"
