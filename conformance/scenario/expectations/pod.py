"""``pod``: its phase, the node that it is bound to, or why it is pending."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from conformance.scenario.base import ObjectSelector, Strict
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed
from conformance.scenario.lint_context import LintContext
from kube.values import KUBE_SCHEDULER, Obj

_UNUSABLE: Final = re.compile(
    r"asks for all devices, but resource pool (?P<pool>\S+) is currently"
    r"|\bpool (?P<invalid>\S+) is invalid: "
)


class Pending(Strict):
    """The PodScheduled condition of a pod that waits."""

    # Reasons of the condition PodScheduled that is not true (k8s.io/api/core/v1).
    reason: Literal["SchedulerError", "SchedulingGated", "Unschedulable"] = "Unschedulable"
    message: str | None = Field(default=None, description="a part of the condition's message")


class PodExpectation(Timed):
    """A pod's phase, where it was scheduled to, or why it was not."""

    pod: str = Field(description="name of the pod")
    namespace: str | None = Field(default=None, description="default: that of the scenario")
    phase: Literal["Pending", "Running", "Succeeded", "Failed"] | None = None
    scheduled: bool | None = Field(default=None, description="whether it is bound to a node")
    node: str | None = Field(default=None, description="name of the node it is bound to")
    pending: Pending | None = Field(
        default=None, description="not scheduled, for this reason; and it stays so"
    )

    @model_validator(mode="after")
    def _something(self) -> PodExpectation:
        if self.phase is None and self.scheduled is None and not self.node and not self.pending:
            raise ValueError("expect a phase, scheduled, node or pending of the pod")
        return self

    @property
    def waits_for_start(self) -> bool:
        return self.phase not in {None, "Pending"}

    @property
    def must_stay(self) -> bool:
        """Return whether it waits: a scheduler about to try again says the same for a moment."""
        return self.pending is not None

    @property
    def may_want_devices(self) -> str:
        """Return the pod itself, if it is in the scenario's namespace."""
        return self.pod if self.namespace is None else ""

    @property
    def expected_to_wait(self) -> bool:
        """Return whether the pod is not on a node when this holds."""
        return self.pending is not None or self.scheduled is False or self.phase == "Pending"

    def describe(self) -> str:
        phrases = []
        if self.phase:
            phrases.append(f"in phase {self.phase}")
        if self.scheduled is not None:
            phrases.append("scheduled" if self.scheduled else "not scheduled")
        if self.node:
            phrases.append(f"on node {self.node}")
        if self.pending:
            message = f": {self.pending.message}" if self.pending.message else ""
            phrases.append(f"pending ({self.pending.reason}{message})")
        where = f" of namespace {self.namespace}" if self.namespace else ""
        return f"pod {self.pod}{where} " + " and ".join(phrases)

    def evaluate(self, cluster: Cluster) -> Evaluation:
        selector = ObjectSelector(kind="Pod", name=self.pod, namespace=self.namespace)
        pod = next(iter(cluster.find(selector)), None)
        observed: dict[str, Any] = {"pod": self.pod}
        if pod is None:
            return Evaluation(False, f"no pod {self.pod}", observed)
        phase = pod.get("status", {}).get("phase")
        node = pod["spec"].get("nodeName")
        condition = _find_scheduled_condition(pod)
        bound = (
            f"bound to {node}" if node else f"not scheduled: {_describe_condition(condition, pod)}"
        )
        problems: list[str] = []
        if self.phase is not None:
            observed["phase"] = phase
            if phase != self.phase:
                problems.append(f"phase {phase}{_explain_containers(pod)}")
        if self.scheduled is not None:
            observed["scheduled"] = bool(node)
            if bool(node) != self.scheduled:
                problems.append(bound)
        if self.node is not None:
            observed["node"] = cluster.make_canonical(node or "")
            if node != self.node and bound not in problems:
                problems.append(bound)
        if self.pending is not None:
            observed["pending"] = condition.get("reason") if condition else None
            message = condition.get("message", "")
            if node:
                problems.append(bound)
            elif self.pending.reason == "Unschedulable" and _waits_for_foreign_pools(
                condition, cluster
            ):
                observed["pending"] = self.pending.reason
            elif condition.get("status") != "False" or condition["reason"] != self.pending.reason:
                problems.append(f"condition PodScheduled {_describe_condition(condition, pod)}")
            elif self.pending.message and self.pending.message not in message:
                problems.append(f"the message {message!r}")
        return Evaluation(
            not problems, f"pod {self.pod}: " + "; ".join(problems or ["ok"]), observed
        )

    def lint(self, lint: LintContext) -> None:
        lint.expects_object(("pod",), "Pod", self.pod, self.namespace)
        if self.node is not None:
            lint.expects_object(("node",), "Node", self.node)
        if self.waits_for_start:
            lint.requires(("phase",), "kubelet")

    def list_scheduled_pods(self) -> Iterable[tuple[str, int]]:
        if self.namespace is not None:
            return
        if self.scheduled or self.node or self.phase in ("Running", "Succeeded"):
            yield self.pod, 1


def _waits_for_foreign_pools(condition: dict[str, Any], cluster: Cluster) -> bool:
    """Return whether the scheduler cannot say now, because of somebody else's unusable pool.

    For a claim for all devices it gives up with an error while any pool of a node is being updated;
    that of 1.34 does so for every claim when it comes by a pool that is invalid
    (allocator_*.go in k8s.io/dynamic-resource-allocation/structured/internal).
    """
    unusable_pool = _UNUSABLE.search(condition.get("message", ""))
    if condition.get("reason") != "SchedulerError" or unusable_pool is None:
        return False
    pool = unusable_pool["pool"] or unusable_pool["invalid"]
    return cluster.make_canonical(pool) == pool


def _find_scheduled_condition(pod: Obj) -> dict[str, Any]:
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled":
            return dict(condition)
    return {}


def _describe_condition(condition: dict[str, Any], pod: Obj) -> str:
    if not condition:
        return f"{pod['spec'].get('schedulerName', KUBE_SCHEDULER)} has reported nothing"
    return f"{condition.get('status')}, {condition.get('reason')}: {condition.get('message', '')}"


def _explain_containers(pod: Obj) -> str:
    """Return why containers wait or failed, so that the message says more than a phase."""
    reasons = []
    for status in pod.get("status", {}).get("containerStatuses", ()):
        state = status.get("state", {})
        for kind in ("waiting", "terminated"):
            if kind in state and state[kind].get("reason") != "Completed":
                detail = state[kind].get("message") or state[kind].get("reason", "")
                reasons.append(f"{status['name']} {kind}: {detail}")
    if not reasons and not pod["spec"].get("nodeName"):
        reasons.append(_describe_condition(_find_scheduled_condition(pod), pod))
    return f" ({'; '.join(reasons)})" if reasons else ""
