"""What pods of scenarios may do: nothing that the pod security standard ``restricted`` refuses.

Source: k8s.io/pod-security-admission policy/check_*.go. A manifest that gives a securityContext, be
it an empty one, keeps it as it is; its namespace must then say what it needs.

OpenShift's default, the security context constraint ``restricted-v2``, admits only users of a range
that each namespace gets for itself. Left out, the user would be the range's first for some and the
image's, perhaps root, for who may use ``anyuid``: so the range's first is asked for.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Final

from conformance.engine.podspec import pod_spec
from conformance.targets.base import Obj

LABEL: Final = ("pod-security.kubernetes.io/enforce", "restricted")
"""Of namespaces that say nothing else: a pod that needs more is noticed in every cluster."""

NOBODY: Final = 65534
"""The user that pods run as: with none, images that run as root, as busybox does, are refused."""

_RANGE: Final = "openshift.io/sa.scc.uid-range"
"""Annotation of a namespace: ``1000700000/10000``, the first and how many."""

_POD: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_CONTAINER: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


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
