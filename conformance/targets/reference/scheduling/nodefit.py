"""Whether a node suits a pod, devices aside: selectors, taints, readiness, resources.

The texts are those of the scheduler's plugins (pkg/scheduler/framework/plugins/*).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.targets.base import Obj
from reference_allocator import api
from reference_allocator.allocatable import demand
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.rules.nodeselector import node_matches

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a node does not suit.

    Attributes:
        reason: in the scheduler's words.
        resolvable: whether removing pods could help (Unschedulable as opposed to
            UnschedulableAndUnresolvable).
    """

    reason: str
    resolvable: bool = False


def misfits(
    pod: Obj, node: Obj, others: Iterable[Obj], backed_by_devices: frozenset[str]
) -> list[Misfit]:
    """Why a pod cannot run on a node; empty if it can.

    Args:
        pod: the pod.
        node: the node.
        others: pods that are on the node.
        backed_by_devices: extended resources that a DeviceClass provides.
    """
    spec = node.get("spec") or {}
    tolerations = pod["spec"].get("tolerations") or []
    unschedulable = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if spec.get("unschedulable") and not _tolerated(unschedulable, tolerations):
        return [Misfit("node(s) were unschedulable")]
    taints = [*(spec.get("taints") or []), *([] if _is_ready(node) else [_NOT_READY])]
    for taint in taints:
        if taint["effect"] in {"NoSchedule", "NoExecute"} and not _tolerated(taint, tolerations):
            return [Misfit("node(s) had untolerated taint(s)")]
    if not _is_selected(pod, node):
        return [Misfit("node(s) didn't match Pod's node affinity/selector")]
    return _lacking(pod, node, others, backed_by_devices)


def _is_ready(node: Obj) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _tolerated(taint: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    for toleration in tolerations:
        if toleration.get("effect") and toleration["effect"] != taint["effect"]:
            continue
        if toleration.get("key") and toleration["key"] != taint["key"]:
            continue
        if toleration.get("operator") == "Exists":
            return True
        if (toleration.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


def _is_selected(pod: Obj, node: Obj) -> bool:
    labels = node["metadata"].get("labels") or {}
    if not (pod["spec"].get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    selector = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if selector is None:
        return True
    return matches(selector, node)


def matches(selector: Obj, node: Obj) -> bool:
    """Whether a ``v1.NodeSelector`` matches a node."""
    parsed = api.NodeSelector.from_dict(selector)
    return node_matches(api.Node.from_dict(node), None, False, parsed)


def _lacking(
    pod: Obj, node: Obj, others: Iterable[Obj], backed_by_devices: frozenset[str]
) -> list[Misfit]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    used: dict[str, int] = {}
    count = 0
    for other in others:
        count += 1
        for name, amount in requests(other).items():
            used[name] = used.get(name, 0) + amount
    found = []
    if count + 1 > amount_of(allocatable.get("pods", "0")):
        found.append(Misfit("Too many pods", resolvable=True))
    for name, amount in requests(pod).items():
        free = amount_of(allocatable.get(name, "0")) - used.get(name, 0)
        from_devices = name in backed_by_devices and not amount_of(allocatable.get(name, "0"))
        if amount > free and not from_devices:
            never = amount > amount_of(allocatable.get(name, "0"))
            found.append(Misfit(f"Insufficient {name}", resolvable=not never))
    return found


def requests(pod: Obj) -> dict[str, int]:
    """What a pod asks for, in units of 1e-9.

    The sum of its containers, or more if an init container needs more; and what its devices take
    of the node's own resources, once that is in its status.
    """
    total: dict[str, int] = {}
    for container in pod["spec"].get("containers") or []:
        for name, amount in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, 0) + amount_of(amount)
    for container in pod["spec"].get("initContainers") or []:
        for name, amount in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = max(total.get(name, 0), amount_of(amount))
    taken = (pod.get("status") or {}).get("nodeAllocatableResourceClaimStatuses") or []
    for name, quantity in demand(taken).items():
        total[name] = total.get(name, 0) + quantity.nanos
    return {name: amount for name, amount in total.items() if amount}


def amount_of(quantity: str) -> int:
    """A quantity in units of 1e-9."""
    return parse_quantity(quantity).nanos
