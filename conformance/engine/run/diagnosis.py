"""What is kept of a scenario that failed, and what others did to its objects.

A scenario that fails by what else runs in the cluster says nothing of Kubernetes or a driver: it is
an error, no failure.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from conformance.engine.run.attempt import ScenarioAttempt
from conformance.seam.scope import Scope
from kube.base.text import one_line
from kube.errors import ApiError
from kube.values import Obj, Query, Ref

EXPLANATION = "explanation.txt"

EXPLAIN_SECONDS = 5.0
"""Limit of the search for a smallest set of claims in conflict."""


def diagnose(scope: Scope) -> Mapping[str, str]:
    """What is kept of a failed scenario: name -> text; of what cannot be had the reason.

    Beside the target's diagnostics: ``snapshot.json`` for ``dra-conformance replay``, and
    ``explanation.txt``, why the reference allocator finds no allocation for its claims.
    """
    items: dict[str, str] = {}
    try:
        items.update(scope.diagnostics())
    except Exception as error:  # noqa: BLE001 -- the finding matters more than its context
        items["diagnostics-error.txt"] = f"{type(error).__name__}: {error}"
    try:
        snapshot = scope.snapshot(pods=True)
        items["snapshot.json"] = json.dumps(snapshot, indent=1, sort_keys=True)
        if snapshot.get("claims"):
            from reference_allocator.explain import explain
            from reference_allocator.snapshot import Snapshot

            parsed = Snapshot.from_dict(snapshot)
            items[EXPLANATION] = explain(parsed, seconds=EXPLAIN_SECONDS).text + "\n"
    except Exception as error:  # noqa: BLE001 -- as above
        items["snapshot-error.txt"] = f"{type(error).__name__}: {error}"
    return items


_POLICY: Final = re.compile(
    r"admission webhook \"(?P<denied>[^\"]+)\" denied the request"
    r"|failed calling webhook \"(?P<failed>[^\"]+)\""
    r"|ValidatingAdmissionPolicy '(?P<policy>[^']+)' with binding"
)
"""Of k8s.io/apiserver, below pkg/admission/plugin: webhook/errors/statuserror.go,
webhook/mutating/dispatcher.go and policy/validating/dispatcher.go."""

_OF_NODES: Final = ("node.kubernetes.io/", "dra-conformance.dev/")
"""Prefixes of taints that the node lifecycle controller or the suite sets."""


def interferences(attempt: ScenarioAttempt, message: str) -> Iterator[str]:
    """What others did to a scenario's objects, in words; nothing where that cannot be read.

    ``message``: why the scenario failed.
    """
    if policy := _policy_of(message, attempt):
        yield f"refused by {policy}, a policy of this cluster and no part of Kubernetes"
    with contextlib.suppress(ApiError):
        pods = [*attempt.scope.find(Query("v1", "Pod"))]
        steps = attempt.scenario.spec.steps
        deletes = any(one.kind == "Node" for step in steps for one in step.delete or ())
        for short in attempt.scenario.spec.nodes:
            name = str(attempt.variables.look_up(f"node.{short}"))
            node = attempt.scope.get(Ref("v1", "Node", name))
            if node is None and not deletes:
                yield (
                    f"the node {name} is gone, and the suite did not delete it: a cloud controller"
                    " manager or a node autoscaler may delete nodes that have no instance"
                )
            for taint in _foreign_taints(node or {}):
                if any(_kept_away(pod, taint) for pod in pods):
                    yield f"the node {name} was given the taint {taint}, which keeps pods away"
    with contextlib.suppress(ApiError):  # the role may not allow to read events
        for event in attempt.scope.find(Query("v1", "Event")):
            if policy := _policy_of(event.get("message", ""), attempt):
                about = event["involvedObject"]
                refused_object = (
                    f"what {about.get('kind')} {about.get('name')} makes is refused by {policy}"
                )
                refusal = one_line(event["message"], 300)
                yield f"{refused_object}, a policy of this cluster: {refusal}"


def _policy_of(message: str, attempt: ScenarioAttempt) -> str | None:
    """The webhook or policy that refused a request; None: none, or one that the scenario made."""
    matched = _POLICY.search(message)
    if matched is None:
        return None
    name = next(filter(None, matched.groups()))
    return None if any(one.name == name for one in attempt.ledger.made) else name


def _foreign_taints(node: Obj) -> Iterator[str]:
    for taint in (node.get("spec") or {}).get("taints") or ():
        if not taint["key"].startswith(_OF_NODES):
            yield taint["key"]


def _kept_away(pod: Obj, taint: str) -> bool:
    """Whether a pod is on no node, and tolerates no taint with that key."""
    if pod["spec"].get("nodeName"):
        return False
    return all(one.get("key", taint) != taint for one in pod["spec"].get("tolerations") or ())
