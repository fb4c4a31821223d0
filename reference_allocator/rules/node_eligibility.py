"""The fit of a node for a pod, devices and resources aside: scheduling off, taints, selectors.

Follows the scheduler's plugins nodeunschedulable, tainttoleration and nodeaffinity; a pod that
names its node suits only that one (nodename). Readiness is not asked: a node that is not ready has
a taint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reference_allocator.api import Node, NodeSelector, Taint, Toleration, reading
from reference_allocator.rules.nodeselector import node_matches
from reference_allocator.rules.taints import blocking_taint

Object = Mapping[str, Any]

_UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def node_problem(node: Object, pod_spec: Object) -> str | None:
    """Return why a pod may not be scheduled to a node, in the scheduler's words; None if it may.

    Args:
        node: a v1 Node.
        pod_spec: ``spec`` of a v1 Pod; an empty one is that of a pod that asks for nothing.

    Raises:
        InputError: an object has not the form of its kind.
        AllocationError: a node selector does not parse.
    """
    spec = reading.read_child(node, "spec", reading.expect_object) or {}
    tolerations = reading.read_items(pod_spec, "tolerations", Toleration.from_dict)
    if reading.read_boolean(spec, "unschedulable") and blocking_taint(
        [_UNSCHEDULABLE], tolerations
    ):
        return "node(s) were unschedulable"
    if blocking_taint(reading.read_items(spec, "taints", Taint.from_dict), tolerations):
        return "node(s) had untolerated taint(s)"
    if not all(selector_matches(item, node) for item in node_selectors(pod_spec)):
        return "node(s) didn't match Pod's node affinity/selector"
    return None


def node_selectors(pod_spec: Object) -> Iterator[NodeSelector]:
    """Yield what a node must match for a pod: the pod's node name, node selector and affinity."""
    labels = reading.read_entries(pod_spec, "nodeSelector", reading.expect_text)
    if labels:
        yield _make_selector("matchExpressions", labels)
    name = reading.read_string(pod_spec, "nodeName")
    if name:
        yield _make_selector("matchFields", {"metadata.name": name})
    affinity = reading.read_child(pod_spec, "affinity", reading.expect_object) or {}
    node_affinity = reading.read_child(affinity, "nodeAffinity", reading.expect_object) or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    selector = reading.read_child(node_affinity, required, NodeSelector.from_dict)
    if selector is not None:
        yield selector


def selector_matches(selector: NodeSelector, node: Object) -> bool:
    """Return whether a ``v1.NodeSelector`` matches a node.

    Raises:
        AllocationError: the selector does not parse.
    """
    return node_matches(Node.from_dict(node), None, False, selector)


def _make_selector(kind: str, values_by_key: Mapping[str, str]) -> NodeSelector:
    terms = [{"key": k, "operator": "In", "values": [v]} for k, v in sorted(values_by_key.items())]
    return NodeSelector.from_dict({"nodeSelectorTerms": [{kind: terms}]})
