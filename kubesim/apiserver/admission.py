"""Admission plugins: ResourceQuota, Priority, DefaultTolerationSeconds and others.

The others are TaintNodesByCondition and PodGroupProtection.
Sources: plugin/pkg/admission/priority/admission.go (without the two system classes),
defaulttolerationseconds, nodetaint and scheduling/podgroupprotection beside it;
pkg/quota/v1/evaluator/core/resource_claims.go and pods.go, CheckRequest in k8s.io/apiserver. A
quota limits what its status says, once the controller has noted it there (`QuotaController`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.conversion import device_requests
from kubesim.cluster import Cluster
from kubesim.store import Store, clone, name_of, namespace_of, new_forbidden
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.extended import ANNOTATION, IMPLICIT_PREFIX, is_extended_resource

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_NOT_READY_SECONDS: Final = 300

GROUP_PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
"""Finalizer of a PodGroup, which its pods need until they are done."""


def admit_new(store: Store, new: Obj) -> None:
    """Complete a new object as admission plugins do, in place; nobody owns what they add.

    A pod has a priority and tolerates for a time that its node is not ready
    (DefaultTolerationSeconds), a node is not ready at first (TaintNodesByCondition), a PodGroup has
    a priority and stays until its pods are done (PodGroupProtection).
    Raises ApiError: 403 Forbidden.
    """
    if new["kind"] == "Pod":
        set_priority(store, new)
        _add_default_tolerations(new["spec"])
    elif new["kind"] == "PodGroup":
        _set_group_priority(store, new)
        finalizers = new["metadata"].setdefault("finalizers", [])
        if GROUP_PROTECTION not in finalizers:
            finalizers.append(GROUP_PROTECTION)
    elif new["kind"] == "Node":
        taints = new.setdefault("spec", {}).get("taints") or []
        if not any({**taint, **_NOT_READY} == taint for taint in taints):
            new["spec"]["taints"] = [*taints, dict(_NOT_READY)]


def admit_changed_pod(new: Obj, old: Obj) -> None:
    """Complete a changed pod as admission plugins do, in place."""
    for field in ("priority", "preemptionPolicy"):
        if field in old["spec"]:
            new["spec"].setdefault(field, old["spec"][field])
    _add_default_tolerations(new["spec"])


def _add_default_tolerations(spec: Obj) -> None:
    """Let a pod stay on a node that is not ready or unreachable for a time, in place."""
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


def set_priority(store: Store, pod: Obj) -> None:
    """Give a new pod the priority of its class, or of the default class, in place.

    Raises ApiError: 403 Forbidden: there is no such class, or the pod says another priority.
    """
    spec = pod["spec"]
    value, policy = _establish_priority(store, pod)
    if spec.get("priority", value) != value:
        text = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise new_forbidden(pod, text)
    if spec.get("preemptionPolicy", policy) != policy:
        text = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the given "
            "PriorityClass name"
        )
        raise new_forbidden(pod, text)
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _set_group_priority(store: Store, group: Obj) -> None:
    """Give a new PodGroup the priority of its class, in place (``admitPodGroup``).

    Raises ApiError: 403 Forbidden.
    """
    spec = group["spec"]
    value, _ = _establish_priority(store, group)
    if spec.get("priority", value) != value:
        text = (
            f"priority set in the pod group ({spec['priority']}) must match the priority computed "
            f"({value}) based on the priority class set in the spec"
        )
        raise new_forbidden(group, text)
    spec["priority"] = value


def _establish_priority(store: Store, obj: Obj) -> tuple[int, str]:
    """Return priority and preemption policy of a new object's class; it is named in place.

    Raises ApiError: 403 Forbidden, there is no such class.
    """
    spec = obj["spec"]
    class_name = spec.get("priorityClassName")
    if class_name:
        priority_class = store.get("PriorityClass", "", class_name)
        if priority_class is None:
            raise new_forbidden(obj, f"no PriorityClass with name {class_name} was found")
    else:
        defaults = [c for c in store.all("PriorityClass") if c.get("globalDefault")]
        priority_class = min(defaults, key=lambda c: int(c["value"]), default=None)
        if priority_class is None:
            return 0, "PreemptLowerPriority"
        spec["priorityClassName"] = name_of(priority_class)
    return priority_class["value"], priority_class["preemptionPolicy"]


_COUNT: Final = "count/resourceclaims.resource.k8s.io"
_OF_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_REQUESTS: Final = "requests."
_ONE: Final = 10**9

Usage = Counter[str]


class Quotas:
    """The quotas of all namespaces."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def admit(self, obj: Obj) -> None:
        """Refuse a new claim or pod that is more than a quota of its namespace leaves.

        Raises ApiError: 403 Forbidden.
        """
        requested = self.usage_of(obj)
        for quota in self._cluster.store.all("ResourceQuota", namespace_of(obj)):
            hard = quota["status"].get("hard") or {}
            limited = sorted(hard.keys() & requested.keys())
            used = self.used_in(namespace_of(obj))
            over = [name for name in limited if used[name] + requested[name] > _amount(hard[name])]
            if over:
                texts = (
                    f"{title}: {','.join(f'{name}={amounts[name]}' for name in over)}"
                    for title, amounts in (
                        ("requested", requested),
                        ("used", used),
                        ("limited", hard),
                    )
                )
                raise new_forbidden(obj, f"exceeded quota: {name_of(quota)}, {', '.join(texts)}")

    def used_in(self, namespace: str) -> Usage:
        """Return what the claims and pods of a namespace use of whatever a quota can limit."""
        used: Usage = Counter()
        for claim in self._cluster.store.all("ResourceClaim", namespace):
            used += self.usage_of(claim)
        for pod in self._cluster.store.all("Pod", namespace):
            if not pods.is_finished(pod):
                used += self.usage_of(pod)
        return used

    def usage_of(self, obj: Obj) -> Usage:
        """Return what one object counts for; nothing if no quota counts its kind."""
        match obj["kind"]:
            case "Pod":
                return _pod_usage(obj)
            case "ResourceClaim":
                return _claim_usage(self._cluster, obj)
        return Counter()


class QuotaController:
    """Writes into the status of each ResourceQuota what it limits, and what of that is used."""

    watches = frozenset({"DeviceClass", "Pod", "ResourceClaim", "ResourceQuota"})

    def __init__(self, cluster: Cluster, quotas: Quotas) -> None:
        self._store = cluster.store
        self._quotas = quotas

    def sync(self) -> None:
        for quota in self._store.all("ResourceQuota"):
            hard = dict(quota["spec"].get("hard") or {})
            used = self._quotas.used_in(namespace_of(quota))
            status = {"hard": hard, "used": {name: str(used.get(name, 0)) for name in hard}}
            self._store.replace({**clone(quota), "status": status})


def _pod_usage(pod: Obj) -> Usage:
    """Return extended resources that the containers ask for."""
    extended_amounts = {
        name: n for name, n in pods.sum_requests(pod).items() if is_extended_resource(name)
    }
    return Counter(
        {f"{_REQUESTS}{name}": nanos // _ONE for name, nanos in extended_amounts.items()}
    )


def _claim_usage(cluster: Cluster, claim: Obj) -> Usage:
    used: Usage = Counter({_COUNT: 1})
    for request in device_requests(claim):
        if request.get("exactly"):
            used += _class_usage(request["exactly"])
            continue
        worst_case: Usage = Counter()  # of each class the worst case
        for alternative in request.get("firstAvailable") or []:
            worst_case |= _class_usage(alternative)
        used += worst_case
    if cluster.gates.get("DRAExtendedResource"):
        _add_extended_usage(cluster, claim, used)
    return used


def _class_usage(device_request: Mapping[str, Any]) -> Usage:
    everything = device_request.get("allocationMode") == "All"
    amount = ALLOCATION_RESULTS_MAX if everything else int(device_request.get("count", 1))
    return Counter({f"{device_request['deviceClassName']}{_OF_CLASS}": amount})


def _add_extended_usage(cluster: Cluster, claim: Obj, used: Usage) -> None:
    """Count devices of a class for its extended resources too, but for what the pod counts."""
    pod = _find_pod_served(cluster, claim)
    counted: Usage = _pod_usage(pod) if pod is not None else Counter()
    for name, amount in list(used.items()):
        if not name.endswith(_OF_CLASS):
            continue
        class_name = name.removesuffix(_OF_CLASS)
        device_class = cluster.store.get("DeviceClass", "", class_name)
        extended = (device_class or {"spec": {}})["spec"].get("extendedResourceName")
        resources = [f"{IMPLICIT_PREFIX}{class_name}", *([extended] if extended else [])]
        names = [f"{_REQUESTS}{resource}" for resource in resources]
        used.update({quota_name: max(0, amount - counted[quota_name]) for quota_name in names})


def _find_pod_served(cluster: Cluster, claim: Obj) -> Obj | None:
    """Return the pod for whose extended resources a claim was made (``getVerifiedPodUsage``).

    Unlike upstream every claim is believed that says so while the pod names none, not the oldest.
    """
    meta = claim["metadata"]
    if (meta.get("annotations") or {}).get(ANNOTATION) != "true":
        return None
    owners = [
        reference for reference in meta.get("ownerReferences") or [] if reference.get("controller")
    ]
    pod = cluster.store.by_uid(owners[0]["uid"]) if owners else None
    if pod is None or pod["kind"] != "Pod":
        return None
    named = pod["status"].get("extendedResourceClaimStatus") or {}
    return pod if named.get("resourceClaimName") in {None, meta.get("name")} else None


def _amount(value: Any) -> int:
    return parse_quantity(str(value)).nanos // _ONE
