"""What pods of scenarios may do: nothing that the pod security standard ``restricted`` refuses.

Source: k8s.io/pod-security-admission policy/check_*.go. A manifest that gives a securityContext, be
it an empty one, keeps it as it is; its namespace must then say what it needs.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from conformance.targets.base import Obj

LABEL: Final = ("pod-security.kubernetes.io/enforce", "restricted")
"""Of namespaces that say nothing else: a pod that needs more is noticed in every cluster."""

_POD: Final = {
    "runAsNonRoot": True,
    # Images that run as root otherwise, as busybox does, are refused. 65534 is nobody.
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_TEMPLATES: Final = frozenset(
    {"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)


def restrict(obj: Obj) -> None:
    """Have a namespace enforce ``restricted``, and pods that are made keep to it.

    Args:
        obj: of any kind, and perhaps malformed: then it is left to the API server.
    """
    kind = obj.get("kind")
    if kind == "Namespace":
        obj["metadata"]["labels"].setdefault(*LABEL)
    if kind == "CronJob":
        obj = _under(obj, "spec", "jobTemplate")
    if kind in _TEMPLATES or kind == "CronJob":
        obj = _under(obj, "spec", "template")
    elif kind != "Pod":
        return
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    spec.setdefault("securityContext", copy.deepcopy(_POD))
    lists = (spec.get(field) for field in ("initContainers", "containers"))
    for one in (one for items in lists if isinstance(items, list) for one in items):
        if isinstance(one, dict):
            one.setdefault("securityContext", copy.deepcopy(_CONTAINER))


def _under(obj: Any, *path: str) -> Obj:
    """What is there below an object; empty where that is nothing, or no object."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}
