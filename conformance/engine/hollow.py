"""Nodes without a kubelet, which allocation scenarios bring along.

To the scheduler they are like any other: Ready, with room for pods. Nothing ever runs on them, and
a taint keeps away pods that do not tolerate everything.
"""

from __future__ import annotations

from conformance.targets.base import Obj

NODE_LABEL = "dra-conformance.dev/node"
TAINT = "dra-conformance.dev/hollow"


def hollow_node(name: str, short: str) -> Obj:
    """A Node manifest with status, for the scenario's node ``short``."""
    room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, NODE_LABEL: short},
        },
        "spec": {"taints": [{"key": TAINT, "value": "true", "effect": "NoSchedule"}]},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Hollow",
                    "message": "brought by a dra-conformance scenario; no kubelet runs here",
                }
            ],
        },
    }
