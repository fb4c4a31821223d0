"""Carries out the steps of a scenario, one after the other or in parallel.

What each verb does is a class in :mod:`conformance.engine.run.verbs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from conformance.engine.run.attempt import ScenarioAttempt
from conformance.engine.run.ending import Divergence
from conformance.engine.run.verbs import VERBS, Observed
from conformance.scenario.driver.variables import fill_captured
from conformance.scenario.metrics import MetricOf
from conformance.scenario.steps import Step
from kube.base.errors import TargetError
from kube.values import Obj

NODE_LABEL = "dra-conformance.dev/node"
TAINT = "dra-conformance.dev/hollow"

_METRIC_SECONDS = 30.0
"""Until a restarted component reports metrics again."""


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


def prepare(attempt: ScenarioAttempt) -> None:
    """Create what a scenario has before its first step: namespace, hollow nodes, accounts."""
    attempt.ledger.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": attempt.scope.namespace}}
    )
    for node in attempt.scenario.spec.nodes:
        attempt.ledger.create(hollow_node(str(attempt.variables.look_up(f"node.{node}")), node))
    for name, account in attempt.scenario.spec.accounts.items():
        user = attempt.user(name)
        if user is not None and account.rules:
            rules = [rule.body for rule in account.rules]
            attempt.scope.grant(user, rules, attempt.ledger.labels)


def perform(step: Step, attempt: ScenarioAttempt) -> Observed:
    """Carry out one step, and return what each of its expectations observed.

    Raises:
        Divergence: an expectation does not hold, or the API server refused what it must accept.
        TargetError: the target broke.
    """
    try:
        step, texts = fill_captured(step, attempt.captured)
    except LookupError as error:
        raise Divergence("the captured values that the step has", str(error.args[0])) from None
    attempt.inserted |= texts
    if step.name is not None:
        # Before the clock and the request: growth counts from here, and reading takes time.
        _read_growing_metrics(step.name, attempt)
        attempt.began_at[step.name] = attempt.scope.now()
    return VERBS[step.action](step, attempt).perform()


def perform_together(
    steps: Sequence[Step], attempt: ScenarioAttempt
) -> list[Callable[[], Observed]]:
    """Carry out several steps in parallel, a single one only when its result is asked for.

    Returns for each step a function that returns or raises what `perform` did.
    """
    if len(steps) == 1:
        return [partial(perform, steps[0], attempt)]
    ends: list[Future[Observed]] = [Future() for _ in steps]
    attempt.scope.at_once(
        [partial(_perform_for, *pair, attempt) for pair in zip(ends, steps, strict=True)]
    )
    return [end.result for end in ends]


def _perform_for(end: Future[Observed], step: Step, attempt: ScenarioAttempt) -> None:
    try:
        end.set_result(perform(step, attempt))
    except Exception as error:  # noqa: BLE001 -- raised again by who asks for the result
        end.set_exception(error)


def _read_growing_metrics(step: str, attempt: ScenarioAttempt) -> None:
    """Read the metrics whose growth since this step is expected later.

    Raises:
        Divergence: the pod whose kubelet is asked is on no node.
        TargetError: a component does not report the metric.
    """
    for later in attempt.scenario.spec.steps:
        for expectation in later.expect or ():
            metric = expectation.growing_metric
            if metric is not None and metric.grown_since == step:
                attempt.metrics_before[step, metric.describe()] = _read_metric(metric, attempt)


def _read_metric(metric: MetricOf, attempt: ScenarioAttempt) -> tuple[str | None, float]:
    node = metric.node
    if metric.node_of is not None:
        node = attempt.node_of(metric.node_of)
        if node is None:
            expected = f"pod {metric.node_of} on a node, to read {metric.describe()}"
            raise Divergence(expected, f"it is not when step {metric.grown_since} begins")
    value = attempt.wait(lambda: attempt.read(metric, node), attempt.limit(_METRIC_SECONDS))
    if value is None:
        raise TargetError(
            f"{metric.component} did not report {metric.name} for {_METRIC_SECONDS:g} s"
        )
    return node, value
