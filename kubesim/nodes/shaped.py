"""What a cluster's shape says of a node, as objects: the Node, and who has devices on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from conformance import probe
from conformance.scenario.shape import ShapeNode
from kube.base.errors import UsageError
from kube.values import Obj, Ref
from kubesim.apiserver.server import ApiServer
from kubesim.nodes.driver import NodeDriver
from kubesim.store import uid_of

SOMEBODY: Final = "somebody-else"  # Namespace of those who hold devices and are not the suite.

_RESOURCES: Final = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
_DECLARED: Final = ("DRANodeAllocatableResources", "DRAOptionalNodeOperations")
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"


def node_object(node: ShapeNode, kubernetes_version: str, gates: Mapping[str, bool]) -> Obj:
    """The Node, with what the node lifecycle controller has made of its state.

    Of features its kubelet declares those that concern DRA (k8s.io/component-helpers,
    nodedeclaredfeatures/features).

    Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, UnreachableTaintTemplate and
    taintKeyToNodeConditionMap.
    """
    taints: list[Obj] = [taint.model_dump() for taint in node.taints]
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


def fit(node: ShapeNode, driver: NodeDriver | None) -> None:
    """Taint devices as the shape says, having seen that the node has all of which it speaks.

    Raises UsageError: naming one that it has not.
    """
    there = driver.devices if driver is not None else []
    for device in (*node.held, *node.device_taints):
        if device not in there:
            has = f"has {', '.join(there)}" if there else "has none"
            raise UsageError(f"the node {node.name} of the cluster shape {has}, not {device}")
    if driver is not None:
        driver.taint({d: [t.model_dump() for t in ts] for d, ts in node.device_taints.items()})


def hold(api: ApiServer, node: str, driver: NodeDriver, devices: Iterable[str]) -> None:
    """Have a pod of another namespace use devices of a node."""
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
        _use(api, name, node, {"driver": driver.name, "pool": pools[device], "device": device})


def _use(api: ApiServer, name: str, node: str, device: Obj) -> None:
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
                    "command": list(probe.HOLD),
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
