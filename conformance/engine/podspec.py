"""The part of an object that says what its pods are, and on which nodes they may run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from conformance.targets.base import Obj

HOSTNAME: Final = "kubernetes.io/hostname"
"""The label by which pods are kept to nodes; each kubelet gives it to its node."""

_TEMPLATES: Final = frozenset(
    {"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)


def pod_spec(obj: Obj) -> Obj | None:
    """The ``spec`` of a pod, or of those that an object makes; None where it is of no such kind."""
    kind = obj.get("kind")
    if kind == "CronJob":
        obj = _under(obj, "spec", "jobTemplate")
    if kind in _TEMPLATES or kind == "CronJob":
        obj = _under(obj, "spec", "template")
    elif kind != "Pod":
        return None
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else None


def _under(obj: Any, *path: str) -> Obj:
    """What is there below an object; empty where that is nothing, or no object."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}


def confine(obj: Obj, nodes: Sequence[str]) -> None:
    """Have pods, and those that an object makes, scheduled to some nodes alone.

    Args:
        obj: of any kind, and perhaps malformed: then it is left to the API server.
        nodes: their names; none: wherever they may.
    """
    spec = pod_spec(obj) if nodes else None
    if spec is None or "nodeName" in spec:
        return
    wanted = {"key": HOSTNAME, "operator": "In", "values": list(nodes)}
    found: Any = spec
    for field in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
        found = found.setdefault(field, {})
        if not isinstance(found, dict):
            return
    terms = found.setdefault("nodeSelectorTerms", [{}])
    for term in terms if isinstance(terms, list) else ():
        if isinstance(term, dict) and isinstance(term.setdefault("matchExpressions", []), list):
            term["matchExpressions"].append(wanted)
