"""On which nodes the pods of scenarios run, and what they may do.

They may do nothing that the pod security standard ``restricted`` refuses.

Source: k8s.io/pod-security-admission policy/check_*.go. A manifest that gives a securityContext, be
it an empty one, keeps it as it is; its namespace must then say what it needs.

OpenShift's default, the security context constraint ``restricted-v2``, admits only users of a range
that each namespace gets for itself. Left out, the user would be the range's first for some and the
image's, perhaps root, for who may use ``anyuid``: so the range's first is asked for.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from conformance.targets.seam.values import Obj

HOSTNAME: Final = "kubernetes.io/hostname"
"""The label by which pods are kept to nodes; each kubelet gives it to its node."""

_TEMPLATES: Final = frozenset(
    {"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)


LABEL: Final = ("pod-security.kubernetes.io/enforce", "restricted")
"""Of namespaces that say nothing else: a pod that needs more is noticed in every cluster."""

NOBODY: Final = 65534
"""The user that pods run as: with none, images that run as root, as busybox does, are refused."""

_RANGE: Final = "openshift.io/sa.scc.uid-range"
"""Annotation of a namespace: ``1000700000/10000``, the first and how many."""

_POD: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}

_CONTAINER: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


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


def first_user(namespace: Obj | None) -> int | None:
    """The first user of a namespace's range; None where it has none yet."""
    notes = namespace["metadata"].get("annotations") or {} if namespace is not None else {}
    found = re.match(r"\d+", notes.get(_RANGE, ""))
    return int(found[0]) if found else None


def restrict(obj: Obj, user: Callable[[], int] = lambda: NOBODY) -> None:
    """Have a namespace enforce ``restricted``, and pods that are made keep to it.

    Args:
        obj: of any kind, and perhaps malformed: then it is left to the API server.
        user: whom a pod that does not say it runs as.
    """
    if obj.get("kind") == "Namespace":
        obj["metadata"]["labels"].setdefault(*LABEL)
    spec = pod_spec(obj)
    if spec is None:
        return
    if "securityContext" not in spec:
        spec["securityContext"] = {**copy.deepcopy(_POD), "runAsUser": user()}
    lists = (spec.get(field) for field in ("initContainers", "containers"))
    for one in (one for items in lists if isinstance(items, list) for one in items):
        if isinstance(one, dict):
            one.setdefault("securityContext", copy.deepcopy(_CONTAINER))
