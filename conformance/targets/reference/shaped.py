"""A node of a cluster's shape as the simulated Kubernetes takes it."""

from __future__ import annotations

from conformance.scenario.shape import ShapeNode
from kube.base.errors import UsageError
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.node import Node


def node_of(shape: ShapeNode) -> Node:
    """Return the node that a shape describes, without its devices, which are the driver's."""
    return Node(
        name=shape.name,
        ready=shape.ready,
        unschedulable=shape.unschedulable,
        labels=shape.labels,
        taints=tuple(taint.model_dump() for taint in shape.taints),
        held=shape.held,
    )


def fit_devices(node: ShapeNode, driver: NodeDriver | None) -> None:
    """Taint devices as the shape says, once it is checked that the node has all it names.

    Raises UsageError: naming one that it has not.
    """
    device_names = driver.devices if driver is not None else []
    for device in (*node.held, *node.device_taints):
        if device not in device_names:
            has = f"has {', '.join(device_names)}" if device_names else "has none"
            raise UsageError(f"the node {node.name} of the cluster shape {has}, not {device}")
    if driver is not None:
        driver.taint({d: [t.model_dump() for t in ts] for d, ts in node.device_taints.items()})
