"""Carries out the steps of a scenario."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from conformance.engine.run.awaiting import Divergence, await_expectation
from conformance.engine.run.changes import NotOneError, send
from conformance.engine.run.churn_rounds import churn
from conformance.engine.run.context import Context
from conformance.engine.run.faults import disturb, stimulate
from conformance.scenario.base import ObjectSelector, ServerSelector
from conformance.scenario.driver.variables import fill_captured
from conformance.scenario.metrics import MetricOf
from conformance.scenario.steps import CopyAllocation, Step
from conformance.seam.overlaps import COPIED
from kube.base.errors import TargetError
from kube.errors import ApiError
from kube.values import Obj, Ref, User

NODE_LABEL = "dra-conformance.dev/node"
TAINT = "dra-conformance.dev/hollow"

DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""Finalizer of a claim that is allocated (k8s.io/api/resource/v1, ``Finalizer``)."""

Observed = list[dict[str, Any]]
"""What the expectations of a step observed, comparable between targets."""

_METRIC_SECONDS = 30.0
"""Until a restarted component reports metrics again."""

ADMISSION_SECONDS = 10.0
"""How far an admission plugin's watches may be behind."""


def hollow_node(name: str, short: str) -> Obj:
    """A node without a kubelet for the scenario's node ``short``: Ready, with room for pods.

    A taint keeps away pods that do not tolerate everything. It has no label ``kubernetes.io/os``:
    kube-proxy's DaemonSet, which tolerates everything, selects nodes by it. A cloud controller
    manager deletes a node that is not ready and has no instance, but keeps one whose provider id it
    cannot read (``MonitorNodes`` in k8s.io/cloud-provider/controllers/nodelifecycle).
    """
    room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, NODE_LABEL: short}},
        "spec": {
            "providerID": f"dra-conformance://{name}",
            "taints": [{"key": TAINT, "value": "true", "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Hollow",
                    "message": "created by a dra-conformance scenario; no kubelet runs here",
                }
            ],
        },
    }


def prepare(context: Context) -> None:
    """Create what a scenario has before its first step: namespace, hollow nodes, accounts."""
    context.ledger.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": context.scope.namespace}}
    )
    for node in context.scenario.spec.nodes:
        context.ledger.create(hollow_node(str(context.variables.look_up(f"node.{node}")), node))
    for name, account in context.scenario.spec.accounts.items():
        user = context.user(name)
        if user is not None and account.rules:
            rules = [rule.body for rule in account.rules]
            context.scope.grant(user, rules, context.ledger.labels)


def perform(step: Step, context: Context) -> Observed:
    """Carry out one step; what each of its expectations observed.

    Raises:
        Divergence: an expectation does not hold, or the API server refused what it must accept.
        TargetError: the target broke.
    """
    try:
        step, texts = fill_captured(step, context.captured)
    except LookupError as error:
        raise Divergence("the captured values that the step has", str(error.args[0])) from None
    context.progress.inserted |= texts
    if step.name is not None:
        _count(step.name, context)
        context.progress.began[step.name] = context.scope.now()
    if step.expect is not None:
        return [await_expectation(expectation, context) for expectation in step.expect]
    if step.churn is not None:
        return [churn(step.churn, context)]
    if (done := _DONE.get(step.action)) is not None:
        done(getattr(step, step.action), context)
    elif step.apply is not None:
        for obj in step.apply:
            _apply(dict(obj), context, context.user(step.account))
    else:
        _change(step, context)
    return []


def perform_together(steps: Sequence[Step], context: Context) -> list[Callable[[], Observed]]:
    """Carry out several steps in parallel, a single one only when its result is asked for.

    Returns for each step a function that returns or raises what `perform` did.
    """
    if len(steps) == 1:
        return [partial(perform, steps[0], context)]
    ends: list[Future[Observed]] = [Future() for _ in steps]
    context.scope.at_once(
        [partial(_keep, *pair, context) for pair in zip(ends, steps, strict=True)]
    )
    return [end.result for end in ends]


def _keep(end: Future[Observed], step: Step, context: Context) -> None:
    try:
        end.set_result(perform(step, context))
    except Exception as error:  # noqa: BLE001 -- raised again by who asks for the result
        end.set_exception(error)


def _capture(wanted: Mapping[str, ObjectSelector], context: Context) -> None:
    for name, selector in wanted.items():
        found = context.find(selector)
        if len(found) != 1:
            raise Divergence(f"one {selector.describe()} to capture", f"{len(found)}")
        context.progress.captured[name] = found[0]


def _watch(wanted: Mapping[str, ServerSelector], context: Context) -> None:
    for name, selector in wanted.items():
        context.watch(name, selector)


def _wait(seconds: float, context: Context) -> None:
    with context.slot.observe():
        context.scope.pause(seconds)


def _change(step: Step, context: Context) -> None:
    """Send a change or deletion that the API server must accept."""
    try:
        send(step, step.delete or (), context)
    except NotOneError as error:
        raise Divergence(error.wanted, error.found) from None
    except ApiError as error:
        raise Divergence(f"to {step.describe()}, which must be accepted", str(error)) from None


def _copy_allocation(wanted: CopyAllocation, context: Context) -> None:
    """Write an allocation as the scheduler does: the finalizer first, then the status."""
    source = context.get("ResourceClaim", wanted.source) or {}
    allocation = (source.get("status") or {}).get("allocation")
    claim = context.get("ResourceClaim", wanted.to)
    if allocation is None or claim is None:
        raise Divergence(f"claim {wanted.source} allocated, and claim {wanted.to}", "one is not")
    finalizers = [*(claim["metadata"].get("finalizers") or []), DELETE_PROTECTION]
    try:
        marked = {"finalizers": finalizers, "annotations": {COPIED: wanted.source}}
        context.scope.patch(Ref.of(claim), {"metadata": marked})
        context.scope.patch(Ref.of(claim), {"status": {"allocation": allocation}}, "status")
    except ApiError as error:
        raise Divergence(f"the allocation of {wanted.to} to be accepted", str(error)) from None


_DONE: Final[Mapping[str, Callable[[Any, Context], None]]] = {
    "capture": _capture,
    "copy_allocation": _copy_allocation,
    "fault": disturb,
    "stimulate": stimulate,
    "wait": _wait,
    "watch": _watch,
}
"""Verb -> what is done with its value. The others observe something, or send a request."""


def _apply(obj: dict[str, Any], context: Context, user: User | None) -> None:
    """Create an object that the API server must accept.

    An admission plugin that knows other objects from watches may refuse it for a moment
    (NodeDeclaredFeatureValidator, and a feature that was only just declared).
    """
    refusal: list[ApiError] = []

    def accepted() -> Obj | None:
        try:
            return context.ledger.create(obj, user)
        except ApiError as error:
            refusal[:] = [error]
            if error.reason != "Forbidden":
                raise
            return None

    with contextlib.suppress(ApiError):
        if accepted() is not None or context.wait(accepted, ADMISSION_SECONDS) is not None:
            return
    [error] = refusal
    name = f"{obj.get('kind')} {obj.get('metadata', {}).get('name')}"
    raise Divergence(f"{name} to be accepted", f"{error.code} {error.reason}: {error.message}")


def _count(step: str, context: Context) -> None:
    """Read the metrics whose growth since this step is expected later.

    Raises:
        Divergence: the pod whose kubelet is asked is on no node.
        TargetError: a component does not report the metric.
    """
    for later in context.scenario.spec.steps:
        for expectation in later.expect or ():
            wanted = expectation.growing_metric
            if wanted is not None and wanted.grown_since == step:
                context.progress.counted[step, wanted.describe()] = _read(wanted, context)


def _read(wanted: MetricOf, context: Context) -> tuple[str | None, float]:
    node = wanted.node
    if wanted.node_of is not None:
        node = context.node_of(wanted.node_of)
        if node is None:
            expected = f"pod {wanted.node_of} on a node, to read {wanted.describe()}"
            raise Divergence(expected, f"it is not when step {wanted.grown_since} begins")
    found = context.wait(lambda: context.read(wanted, node), context.limit(_METRIC_SECONDS))
    if found is None:
        raise TargetError(
            f"{wanted.component} did not report {wanted.name} for {_METRIC_SECONDS:g} s"
        )
    return node, found
