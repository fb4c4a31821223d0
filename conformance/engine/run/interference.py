"""What else runs in a cluster and changed or refused a scenario's objects.

A scenario that fails by that says nothing of Kubernetes or a driver: it is an error, no failure.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from conformance.engine.run.context import Context
from conformance.targets.seam.values import ApiError, Obj, Query, Ref
from conformance.text import one_line

_POLICY: Final = re.compile(
    r"admission webhook \"(?P<denied>[^\"]+)\" denied the request"
    r"|failed calling webhook \"(?P<failed>[^\"]+)\""
    r"|ValidatingAdmissionPolicy '(?P<policy>[^']+)' with binding"
)
"""Of k8s.io/apiserver, below pkg/admission/plugin: webhook/errors/statuserror.go,
webhook/mutating/dispatcher.go and policy/validating/dispatcher.go."""

_OF_NODES: Final = ("node.kubernetes.io/", "dra-conformance.dev/")
"""Prefixes of taints that the node lifecycle controller or the suite sets."""


def interferences(context: Context, message: str) -> Iterator[str]:
    """What others did to a scenario's objects, in words; nothing where that cannot be read.

    ``message``: why the scenario failed.
    """
    if policy := _policy_of(message, context):
        yield f"refused by {policy}, a policy of this cluster and no part of Kubernetes"
    with contextlib.suppress(ApiError):
        pods = [*context.scope.find(Query("v1", "Pod"))]
        steps = context.scenario.spec.steps
        deletes = any(one.kind == "Node" for step in steps for one in step.delete or ())
        for short in context.scenario.spec.nodes:
            name = str(context.variables.value(f"node.{short}"))
            node = context.scope.get(Ref("v1", "Node", name))
            if node is None and not deletes:
                yield (
                    f"the node {name} is gone, and the suite did not delete it: a cloud controller"
                    " manager or a node autoscaler may delete nodes that have no instance"
                )
            for taint in _foreign_taints(node or {}):
                if any(_kept_away(pod, taint) for pod in pods):
                    yield f"the node {name} was given the taint {taint}, which keeps pods away"
    with contextlib.suppress(ApiError):  # the role may not allow to read events
        for event in context.scope.find(Query("v1", "Event")):
            if policy := _policy_of(event.get("message", ""), context):
                about = event["involvedObject"]
                what = f"what {about.get('kind')} {about.get('name')} makes is refused by {policy}"
                yield f"{what}, a policy of this cluster: {one_line(event['message'], 300)}"


def _policy_of(message: str, context: Context) -> str | None:
    """The webhook or policy that refused a request; None: none, or one that the scenario made."""
    found = _POLICY.search(message)
    if found is None:
        return None
    name = next(filter(None, found.groups()))
    return None if any(one.name == name for one in context.ledger.made) else name


def _foreign_taints(node: Obj) -> Iterator[str]:
    for taint in (node.get("spec") or {}).get("taints") or ():
        if not taint["key"].startswith(_OF_NODES):
            yield taint["key"]


def _kept_away(pod: Obj, taint: str) -> bool:
    """Whether a pod is on no node, and tolerates no taint with that key."""
    if pod["spec"].get("nodeName"):
        return False
    return all(one.get("key", taint) != taint for one in pod["spec"].get("tolerations") or ())
