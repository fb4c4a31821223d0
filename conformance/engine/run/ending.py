"""How a scenario ended: the first problem, attempts, known issues, diagnostics, and interference.

A scenario that fails by what else runs in the cluster says nothing of Kubernetes or a driver: it is
an error, no failure.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from conformance.engine.run.awaiting import Divergence
from conformance.engine.run.context import Context, Interrupted
from conformance.engine.setup import Setup
from conformance.results.events.scenario import Attempt, Outcome, ScenarioFinished
from conformance.seam.scope import Scope
from kube.base.errors import ConformanceError
from kube.base.text import one_line
from kube.errors import ApiError
from kube.values import Obj, Query, Ref

EXPLANATION = "explanation.txt"

EXPLAIN_SECONDS = 5.0
"""Limit of the search for a smallest set of claims in conflict."""


class Ending:
    """How a scenario has gone so far.

    Args:
        where: the scenario, as ``file:line``.

    Attributes:
        outcome: passed until something goes wrong.
        message: the first problem, with what belongs to it.
        where: of the first problem, as ``file:line``.
        latest: outcome and message of the last problem.
    """

    def __init__(self, where: str) -> None:
        self.outcome = Outcome.PASSED
        self.message = ""
        self.where = where
        self.latest = (self.outcome, self.message)

    @property
    def well(self) -> bool:
        return self.outcome is Outcome.PASSED

    def note(self, outcome: Outcome, message: str, where: str = "") -> None:
        self.latest = (outcome, message)
        if self.well:
            self.outcome, self.message, self.where = outcome, message, where or self.where

    def excuse(self, reasons: Iterable[str]) -> None:
        """Take a failure for an error, if something else than the target may have caused it."""
        if explanation := "; ".join(dict.fromkeys(reasons)):
            self.outcome = Outcome.ERROR
            self.message = f"not judged: {explanation}\n{self.message}"

    def blame(self, message: str) -> None:
        """Fail, also where it was taken for an error that the target broke; this is why."""
        if self.outcome is Outcome.ERROR:
            self.outcome = Outcome.FAILED
            self.add(message)
        elif self.well:
            self.note(Outcome.FAILED, message)
        else:
            self.add(message)

    def add(self, message: str) -> None:
        self.message += f"\n{message}"


def is_known(error: Exception) -> bool:
    """Whether an error is one that steps are expected to raise, and no bug of the suite."""
    return isinstance(error, Divergence | ApiError | Interrupted | ConformanceError)


def ended_by(error: Exception) -> tuple[Outcome, str]:
    """The outcome and message of a scenario whose step raised an error."""
    match error:
        case Divergence():
            return Outcome.FAILED, str(error)
        case ApiError():
            text = f"the API server refused: {error.code} {error.reason}: {error.message}"
            return Outcome.FAILED, text
        case Interrupted():
            return Outcome.LOST, "the run was interrupted"
        case ConformanceError():
            return Outcome.ERROR, str(error)
    return Outcome.ERROR, f"the suite failed: {type(error).__name__}: {error}"


def may_be_chance(finished: ScenarioFinished, setup: Setup) -> bool:
    """Whether a failure may be retried.

    Not an allocation against the rules, a device in two claims, something that is left behind, or
    without the driver.
    """
    if finished.outcome not in (Outcome.FAILED, Outcome.ERROR) or setup.stop.is_set():
        return False
    if setup.lost:
        return False
    told_here = any(item.namespace == finished.namespace for item in finished.overlaps)
    if finished.left or told_here:
        return False
    return setup.compare is None or setup.compare(finished).conformant


def ended_after(finished: ScenarioFinished, attempts: Sequence[Attempt]) -> ScenarioFinished:
    if not attempts:
        return finished
    passed = finished.outcome is Outcome.PASSED
    attempt_messages = [f"attempt {n}: {item.message}" for n, item in enumerate(attempts, start=1)]
    return replace(
        finished,
        outcome=Outcome.FLAKY if passed else finished.outcome,
        message="\n".join([f"passed at attempt {len(attempt_messages) + 1}", *attempt_messages])
        if passed
        else finished.message,
        where=attempts[-1].where if passed else finished.where,
        attempts=tuple(attempts),
    )


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
            name = str(context.variables.look_up(f"node.{short}"))
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
                refused_object = (
                    f"what {about.get('kind')} {about.get('name')} makes is refused by {policy}"
                )
                refusal = one_line(event["message"], 300)
                yield f"{refused_object}, a policy of this cluster: {refusal}"


def _policy_of(message: str, context: Context) -> str | None:
    """The webhook or policy that refused a request; None: none, or one that the scenario made."""
    matched = _POLICY.search(message)
    if matched is None:
        return None
    name = next(filter(None, matched.groups()))
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
