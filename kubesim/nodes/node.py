"""A node as it is asked for, and as objects: the Node, and who has devices on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kube.values import Obj, Ref
from kubesim.apiserver.server import ApiServer
from kubesim.nodes.driver import NodeDriver
from kubesim.store import uid_of


@dataclass(frozen=True, slots=True)
class Node:
    """A node to simulate.

    Attributes:
        ready: whether its kubelet runs; without one its driver's ResourceSlices have stayed.
        unschedulable: it is cordoned.
        labels: beside those of every node.
        taints: of the Node object, as ``spec.taints`` has them.
        held: devices of its driver that a pod in another namespace uses.
    """

    name: str
    ready: bool = True
    unschedulable: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Obj] = ()
    held: Sequence[str] = ()


SOMEBODY: Final = "somebody-else"  # Namespace of those who hold devices and are not the suite.

_RESOURCES: Final = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
_DECLARED: Final = ("DRANodeAllocatableResources", "DRAOptionalNodeOperations")
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"


def node_object(node: Node, kubernetes_version: str, gates: Mapping[str, bool]) -> Obj:
    """Return the Node, with what the node lifecycle controller has made of its state.

    Of features its kubelet declares those that concern DRA (k8s.io/component-helpers,
    nodedeclaredfeatures/features).

    Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, UnreachableTaintTemplate and
    taintKeyToNodeConditionMap.
    """
    taints: list[Obj] = [dict(taint) for taint in node.taints]
    if node.unschedulable:
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if not node.ready:
        taints += [{"key": _UNREACHABLE, "effect": e} for e in ("NoSchedule", "NoExecute")]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    if not node.ready:
        ready |= {"status": "Unknown", "reason": "NodeStatusUnknown"}
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
    }
    declared = [name for name in _DECLARED if gates.get(name) and gates.get("NodeDeclaredFeatures")]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": {**labels, **node.labels}},
        "spec": {
            **({"unschedulable": True} if node.unschedulable else {}),
            **({"taints": taints} if taints else {}),
        },
        "status": {
            "capacity": dict(_RESOURCES),
            "allocatable": dict(_RESOURCES),
            "conditions": [ready],
            **({"declaredFeatures": declared} if declared else {}),
            "nodeInfo": {"kubeletVersion": f"v{kubernetes_version}"},
        },
    }


def hold_devices(
    api: ApiServer, node: str, driver: NodeDriver, devices: Iterable[str], command: Sequence[str]
) -> None:
    """Make pods of another namespace that use devices of a node.

    ``command``: of their containers; it runs until it is told to end.
    """
    pools = {
        device["name"]: item["spec"]["pool"]["name"]
        for item in driver.slices
        for device in item["spec"].get("devices") or ()
    }
    namespace = Ref("v1", "Namespace", SOMEBODY)
    if api.get(namespace, "") is None:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SOMEBODY}}, "")
    for device in devices:
        name = f"{node}-{device}"
        _use(
            api,
            name,
            node,
            command,
            {"driver": driver.name, "pool": pools[device], "device": device},
        )


def _use(api: ApiServer, name: str, node: str, command: Sequence[str], device: Obj) -> None:
    exactly = {"deviceClassName": device["driver"]}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "it", "exactly": exactly}]}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "resourceClaims": [{"name": "it", "resourceClaimName": name}],
            "containers": [
                {
                    "name": "ctr",
                    "image": "somebody/else:1",
                    "command": list(command),
                    "resources": {"claims": [{"name": "it"}]},
                }
            ],
        },
    }
    ref = Ref.of(api.create(claim, SOMEBODY))
    user = {"resource": "pods", "name": name, "uid": uid_of(api.create(pod, SOMEBODY))}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    allocation = {
        "devices": {"results": [{"request": "it", **device}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    status = {"allocation": allocation, "reservedFor": [user]}
    api.change(ref, lambda claim: {**claim, "status": status}, "status", SOMEBODY)
