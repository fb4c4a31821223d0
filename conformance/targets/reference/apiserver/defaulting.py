"""What the API server fills in, as far as DRA or a scenario's expectations can see it.

Sources: pkg/apis/{resource,core,batch,apps}/v1/defaults.go, and the admission plugin
DefaultTolerationSeconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.targets.reference.clock import VirtualClock
from conformance.targets.seam.values import Obj
from reference_allocator.api.quantity import parse_quantity

_NOT_READY_SECONDS = 300
_WORKLOADS = frozenset({"DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"})


def apply(obj: Obj, clock: VirtualClock, *, submitted_as: str) -> None:
    """Complete a new object in its stored version, in place.

    Args:
        clock: virtual time.
        submitted_as: ``apiVersion`` that the client used; v1beta1 has rules of its own.
    """
    flat = submitted_as.endswith("/v1beta1")
    match obj["kind"]:
        case "Pod":
            obj["spec"] = _pod_spec(obj.get("spec") or {}, "Always")
            _tolerations(obj["spec"])
            obj["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
        case kind if kind in _WORKLOADS:
            _workload(obj)
            obj["status"] = {}
        case "PriorityClass":
            obj.setdefault("value", 0)
            obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        case "ResourceClaim":
            _device_requests(obj.get("spec"), flat=flat)
            obj["status"] = {}
        case "ResourceClaimTemplate":
            _device_requests((obj.get("spec") or {}).get("spec"), flat=flat)
        case "ResourceSlice":
            _resource_slice(obj, clock)
        case "ResourceQuota":
            obj["status"] = {}
        case "DeviceTaintRule":
            _taint((obj.get("spec") or {}).get("taint"), clock)
            obj["status"] = {}
        case "Namespace":
            obj.setdefault("spec", {})["finalizers"] = ["kubernetes"]
            obj["status"] = {"phase": "Active"}
            labels = obj["metadata"].setdefault("labels", {})
            if obj["metadata"].get("name"):
                labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


def drop_deallocated(new: Obj, old: Obj) -> None:
    """Drop a claim's reports on devices that it has no more (``dropDeallocatedStatusDevices``)."""
    gone = _devices(old) - _devices(new)
    reports = new["status"].get("devices") or []
    kept = [report for report in reports if _device(report) not in gone]
    if kept != reports:
        new["status"]["devices"] = kept
        if not kept:
            del new["status"]["devices"]


def _devices(claim: Obj) -> set[tuple[str | None, ...]]:
    allocation = claim["status"].get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or []
    return {_device(result) for result in results}


def _device(entry: Obj) -> tuple[str | None, ...]:
    return tuple(entry.get(field) for field in ("driver", "pool", "device", "shareID"))


def apply_to_change(obj: Obj, old: Obj, clock: VirtualClock) -> None:
    """Complete a changed object in its stored version, in place, as far as defaults can matter."""
    if obj["kind"] == "ResourceSlice":
        _resource_slice(obj, clock)
    elif obj["kind"] in {"ResourceClaim", "ResourceClaimTemplate"}:
        spec = obj.get("spec") or {}
        _device_requests(spec if obj["kind"] == "ResourceClaim" else spec.get("spec"), flat=False)
    elif obj["kind"] in _WORKLOADS:
        _workload(obj)
    elif obj["kind"] == "DeviceTaintRule":
        taint, before = obj["spec"].get("taint") or {}, old["spec"]["taint"]
        _taint(taint, clock)
        # It says since when there is this effect (registry/resource/devicetaintrule/strategy.go).
        same_time = taint.get("timeAdded") == before["timeAdded"]
        if same_time and taint.get("effect") != before["effect"]:
            taint["timeAdded"] = clock.timestamp()


def _device_requests(spec: Any, *, flat: bool) -> None:
    for request in ((spec or {}).get("devices") or {}).get("requests") or []:
        exact = [request["exactly"]] if request.get("exactly") is not None else []
        if flat:
            # Without a class such a request should be one of alternatives and gets no defaults.
            exact = [wanted for wanted in exact if wanted.get("deviceClassName")]
        for wanted in [*exact, *(request.get("firstAvailable") or [])]:
            mode = wanted.setdefault("allocationMode", "ExactCount")
            # 0 is the same as absent: the field is a plain integer.
            if not wanted.get("count"):
                wanted.pop("count", None)
                if mode == "ExactCount":
                    wanted["count"] = 1
            for toleration in wanted.get("tolerations") or []:
                toleration.setdefault("operator", "Equal")


def _resource_slice(obj: Obj, clock: VirtualClock) -> None:
    for device in (obj.get("spec") or {}).get("devices") or []:
        for taint in device.get("taints") or []:
            _taint(taint, clock)
        for capacity in (device.get("capacity") or {}).values():
            if isinstance(capacity, dict) and "value" in capacity:
                capacity["value"] = _quantity(capacity["value"])


def _taint(taint: Any, clock: VirtualClock) -> None:
    if isinstance(taint, dict):
        taint.setdefault("timeAdded", clock.timestamp())


def _pod_spec(spec: Obj, restart_policy: str | None) -> Obj:
    if restart_policy is not None:
        spec.setdefault("restartPolicy", restart_policy)
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    spec.setdefault("enableServiceLinks", True)
    for container in containers(spec):
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        _resources(container.setdefault("resources", {}))
    return spec


def containers(spec: Obj) -> Iterator[Obj]:
    """Init containers, then containers, of a pod's spec."""
    for field in ("initContainers", "containers"):
        yield from (item for item in spec.get(field) or [] if isinstance(item, dict))


def _pull_policy(image: str) -> str:
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    return "Always" if tag in {"", "latest"} and "@" not in image else "IfNotPresent"


def _quantity(value: str | int | float) -> str:
    """As it is read back: always a string."""
    return str(parse_quantity(str(value)))


def _resources(requirements: Obj) -> None:
    """Quantities are strings when they are read back; requests default to limits."""
    limits = requirements.get("limits")
    for field in ("limits", "requests"):
        if requirements.get(field):
            requirements[field] = {
                name: _quantity(amount) for name, amount in requirements[field].items()
            }
    if limits:
        requests = requirements.setdefault("requests", {})
        for name, amount in requirements["limits"].items():
            requests.setdefault(name, amount)


def _tolerations(spec: Obj) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(entry.get("key") in {key, None, ""} for entry in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _NOT_READY_SECONDS,
                }
            )


def _workload(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    match obj["kind"]:
        case "Job":
            if "completions" not in spec and "parallelism" not in spec:
                spec["completions"] = 1
            spec.setdefault("parallelism", 1)
            spec.setdefault("backoffLimit", 6)
            spec.setdefault("completionMode", "NonIndexed")
            spec.setdefault("suspend", False)
        case "DaemonSet":
            spec.setdefault("updateStrategy", {}).setdefault("type", "RollingUpdate")
        case "ReplicaSet":
            spec.setdefault("replicas", 1)
        case "StatefulSet":
            spec.setdefault("replicas", 1)
            spec.setdefault("revisionHistoryLimit", 10)
            spec.setdefault("podManagementPolicy", "OrderedReady")
            strategy = spec.setdefault("updateStrategy", {})
            if not strategy:
                strategy |= {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
        case "Deployment":
            spec.setdefault("replicas", 1)
            spec.setdefault("revisionHistoryLimit", 10)
            spec.setdefault("progressDeadlineSeconds", 600)
            strategy = spec.setdefault("strategy", {})
            if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
                rolling = strategy.setdefault("rollingUpdate", {})
                rolling.setdefault("maxUnavailable", "25%")
                rolling.setdefault("maxSurge", "25%")
    template = spec.setdefault("template", {})
    template["spec"] = _pod_spec(template.get("spec") or {}, "Always")
