"""On which nodes the pods of scenarios run, and their securityContext.

It is what the pod security standard ``restricted`` admits (k8s.io/pod-security-admission,
policy/check_*.go), unless a manifest gives a securityContext, be it an empty one.

OpenShift's default, the security context constraint ``restricted-v2``, admits only users of a range
that each namespace gets. Who may use ``anyuid`` would run pods as the image's user, perhaps root,
if none were named: so the range's first is.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from kube.values import Obj

HOSTNAME: Final = "kubernetes.io/hostname"
"""The label by which pods are confined to nodes; each kubelet sets it."""

_TEMPLATES: Final = frozenset(
    {"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)

LABEL: Final = ("pod-security.kubernetes.io/enforce", "restricted")
"""Of namespaces that say nothing else, so that a pod that needs more fails in every cluster."""

NOBODY: Final = 65534
"""The user of pods: without one, images that run as root, such as busybox, are refused."""

_RANGE: Final = "openshift.io/sa.scc.uid-range"
"""Annotation of a namespace: ``1000700000/10000``, the first and how many."""

_POD: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}

_CONTAINER: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pod_spec(obj: Obj) -> Obj | None:
    """The ``spec`` of a pod, or of an object's pod template; None of any other kind."""
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
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}


def ask_for(obj: Obj, scheduler: str) -> None:
    """Let pods and pod templates that name no scheduler ask for this one; "" is the default."""
    spec = pod_spec(obj) if scheduler else None
    if spec is not None:
        spec.setdefault("schedulerName", scheduler)


def confine(obj: Obj, nodes: Sequence[str]) -> None:
    """Give pods and pod templates a required node affinity.

    Args:
        obj: of any kind; a malformed one is left to the API server.
        nodes: their names; empty means any.
    """
    spec = pod_spec(obj) if nodes else None
    if spec is None or "nodeName" in spec:
        return
    on_nodes = {"key": HOSTNAME, "operator": "In", "values": list(nodes)}
    parent: Any = spec
    for field in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
        parent = parent.setdefault(field, {})
        if not isinstance(parent, dict):
            return
    terms = parent.setdefault("nodeSelectorTerms", [{}])
    for term in terms if isinstance(terms, list) else ():
        if isinstance(term, dict) and isinstance(term.setdefault("matchExpressions", []), list):
            term["matchExpressions"].append(on_nodes)


def first_user(namespace: Obj | None) -> int | None:
    """The first user of a namespace's range, None if it has none yet."""
    notes = namespace["metadata"].get("annotations") or {} if namespace is not None else {}
    matched = re.match(r"\d+", notes.get(_RANGE, ""))
    return int(matched[0]) if matched else None


def restrict(obj: Obj, user: Callable[[], int] = lambda: NOBODY) -> None:
    """Let a namespace enforce ``restricted``, and pods keep to it.

    Args:
        obj: of any kind; a malformed one is left to the API server.
        user: of pods that name none.
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
