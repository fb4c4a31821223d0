"""What the API server fills in, as far as DRA or a scenario's expectations can see it.

Sources: pkg/apis/{resource,core,batch,apps}/v1/defaults.go and scheduling/v1beta1 beside them, and
``PrepareForCreate`` of pods.
"""

from __future__ import annotations

from typing import Any

from kube.slices import results_of
from kube.values import KUBE_SCHEDULER, Obj, device_key
from kubesim.apiserver.conversion import device_requests, list_devices
from kubesim.clock import VirtualClock
from kubesim.pods import list_containers
from kubesim.store import retain_items
from kubesim.validation.pool_status import POOLS_LIMIT
from reference_allocator.api.defaulting import default_slice
from reference_allocator.api.quantity import Quantity, parse_quantity

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
"""The condition of a new pod with gates (``applySchedulingGatedCondition``)."""
_QOS_RESOURCES = ("cpu", "memory")
_WORKLOADS = frozenset({"DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"})
_WITH_SPEC = frozenset(
    {"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"}
    | {"PodGroup", "ResourcePoolStatusRequest"}
)
_WITH_STATUS = _WORKLOADS | {"DeviceTaintRule", "PodGroup", "ResourceClaim", "ResourceQuota"}


def apply_defaults(obj: Obj, clock: VirtualClock, *, submitted_as: str) -> None:
    """Complete a new object in its stored version, in place.

    Args:
        clock: virtual time.
        submitted_as: ``apiVersion`` that the client used; v1beta1 has rules of its own.
    """
    _set_defaults_of_kind(obj, clock, flat=submitted_as.endswith("/v1beta1"))
    if obj["kind"] in _WITH_STATUS:
        obj["status"] = {}
    match obj["kind"]:
        case "Pod":
            _default_pod(obj)
            obj["status"] = {"phase": "Pending", "qosClass": find_qos_class(obj["spec"])}
            if obj["spec"].get("schedulingGates"):
                since = {"lastTransitionTime": clock.format_timestamp()}
                obj["status"]["conditions"] = [{**_GATED, **since}]
        case "PriorityClass":
            obj.setdefault("value", 0)
            obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        case "Namespace":
            obj.setdefault("spec", {})["finalizers"] = ["kubernetes"]
            obj["status"] = {"phase": "Active"}
            labels = obj["metadata"].setdefault("labels", {})
            if obj["metadata"].get("name"):
                labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


def _set_defaults_of_kind(obj: Obj, clock: VirtualClock, *, flat: bool) -> None:
    """Fill in what is filled in at every write. ``flat``: it came in v1beta1."""
    for request in device_requests(obj):
        _default_request(request, flat=flat)
    for device in list_devices(obj):
        for taint in device.get("taints") or []:
            _default_taint(taint, clock)
    if obj["kind"] in _WITH_SPEC:
        obj.setdefault("spec", {})  # no pointer in Go: the field is always there
    if obj["kind"] == "ResourceSlice":
        obj.update(default_slice(obj))
    elif obj["kind"] == "Node":
        _default_node_status(obj["status"])
    elif obj["kind"] in _WORKLOADS:
        _default_workload(obj)
    elif obj["kind"] == "DeviceTaintRule":
        _default_taint((obj.get("spec") or {}).get("taint"), clock)
    elif obj["kind"] == "ResourcePoolStatusRequest":
        obj["spec"].setdefault("limit", POOLS_LIMIT)
    elif obj["kind"] == "PodGroup":
        _set_defaults(obj["spec"], schedulingPolicy={}, disruptionMode={"single": {}})


def apply_to_status(obj: Obj) -> None:
    """Complete an object whose status was changed, in its stored version, in place."""
    if obj["kind"] == "Node":
        _default_node_status(obj.get("status") or {})
    elif obj["kind"] == "ResourceClaim":
        for result in results_of(obj):
            for toleration in result.get("tolerations") or []:
                toleration.setdefault("operator", "Equal")


def _default_node_status(status: Obj) -> None:
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def drop_deallocated(new: Obj, old: Obj) -> None:
    """Drop a claim's reports on devices that it has no more (``dropDeallocatedStatusDevices``)."""
    deallocated = {*map(device_key, results_of(old))}.difference(map(device_key, results_of(new)))
    if any(device_key(report) in deallocated for report in new["status"].get("devices") or []):
        retain_items(new["status"], "devices", lambda report: device_key(report) not in deallocated)


def apply_to_change(obj: Obj, old: Obj, clock: VirtualClock, submitted_as: str) -> None:
    """Complete a changed object in its stored version, in place, as far as defaults can matter.

    ``submitted_as``: the apiVersion in which it was sent.
    """
    _set_defaults_of_kind(obj, clock, flat=submitted_as.endswith("/v1beta1"))
    if obj["kind"] == "Pod":
        _default_pod(obj)
    elif obj["kind"] == "DeviceTaintRule":
        taint, old_taint = obj["spec"].get("taint") or {}, old["spec"]["taint"]
        # It says since when there is this effect (registry/resource/devicetaintrule/strategy.go).
        same_time = taint.get("timeAdded") == old_taint["timeAdded"]
        if same_time and taint.get("effect") != old_taint["effect"]:
            taint["timeAdded"] = clock.format_timestamp()


def _default_request(request: Obj, *, flat: bool) -> None:
    exact = [request["exactly"]] if request.get("exactly") is not None else []
    for device_request in [*exact, *(request.get("firstAvailable") or [])]:
        for toleration in device_request.get("tolerations") or []:
            toleration.setdefault("operator", "Equal")
        if flat and device_request in exact and not device_request.get("deviceClassName"):
            continue  # Without a class it should be one of alternatives and has no other defaults.
        mode = device_request.setdefault("allocationMode", "ExactCount")
        # 0 is the same as absent: the field is a plain integer.
        if not device_request.get("count"):
            device_request.pop("count", None)
            if mode == "ExactCount":
                device_request["count"] = 1


def _default_taint(taint: Any, clock: VirtualClock) -> None:
    if isinstance(taint, dict):
        taint.setdefault("timeAdded", clock.format_timestamp())


def _set_defaults(obj: Obj, **defaults: Any) -> None:
    for field, value in defaults.items():
        obj.setdefault(field, value)


def _default_pod(pod: Obj) -> None:
    pod["spec"] = _default_pod_spec(pod.get("spec") or {})
    pod["spec"].setdefault("enableServiceLinks", True)


def _default_pod_spec(spec: Obj) -> Obj:
    _set_defaults(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        schedulerName=KUBE_SCHEDULER,
        securityContext={},
    )
    for container in list_containers(spec):
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        default_requests_to_limits(container.setdefault("resources", {}))
    return spec


def _pull_policy(image: str) -> str:
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    return "Always" if tag in {"", "latest"} and "@" not in image else "IfNotPresent"


def default_requests_to_limits(requirements: Obj) -> None:
    """Default requests to limits."""
    if requirements.get("limits"):
        requests = requirements.setdefault("requests", {})
        for name, amount in requirements["limits"].items():
            requests.setdefault(name, amount)


def find_qos_class(spec: Obj) -> str:
    """Return how well a pod with this spec is served (``ComputePodQOS``).

    A pod's own amounts (spec.resources) are not looked at.
    """
    totals: dict[str, dict[str, Quantity]] = {"requests": {}, "limits": {}}
    is_guaranteed = True
    for container in list_containers(spec):
        resources = container.get("resources") or {}
        for field, total in totals.items():
            for name, text in (resources.get(field) or {}).items():
                amount = parse_quantity(str(text))
                if name in _QOS_RESOURCES and amount.sign() > 0:
                    total[name] = amount.add(total[name]) if name in total else amount
        limits = resources.get("limits") or {}
        is_guaranteed &= all(
            name in limits and parse_quantity(str(limits[name])).sign() > 0
            for name in _QOS_RESOURCES
        )
    if not totals["requests"] and not totals["limits"]:
        return "BestEffort"
    if is_guaranteed and totals["requests"] == totals["limits"]:
        return "Guaranteed"
    return "Burstable"


def _default_workload(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    match obj["kind"]:
        case "Job":
            if "completions" not in spec and "parallelism" not in spec:
                spec["completions"] = 1
            _set_defaults(
                spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False
            )
        case "DaemonSet":
            spec.setdefault("updateStrategy", {}).setdefault("type", "RollingUpdate")
        case "ReplicaSet":
            spec.setdefault("replicas", 1)
        case "StatefulSet":
            _set_defaults(
                spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady"
            )
            strategy = spec.setdefault("updateStrategy", {})
            if not strategy:
                strategy |= {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
        case "Deployment":
            _set_defaults(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
            strategy = spec.setdefault("strategy", {})
            if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
                rolling = strategy.setdefault("rollingUpdate", {})
                _set_defaults(rolling, maxUnavailable="25%", maxSurge="25%")
    template = spec.setdefault("template", {})
    template["spec"] = _default_pod_spec(template.get("spec") or {})
