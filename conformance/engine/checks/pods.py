"""Evaluate expectations on pods: phase, node, and why one is pending."""

from __future__ import annotations

from typing import Any

from conformance.engine.context import Context, Seen
from conformance.scenario.expectations import PodExpectation
from conformance.targets.base import Obj


def check_pod(expectation: PodExpectation, context: Context) -> Seen:
    """Compare one pod with the expectation, as it is now."""
    pod = context.get("Pod", expectation.pod)
    observed: dict[str, Any] = {"pod": expectation.pod}
    if pod is None:
        return Seen(False, f"no pod {expectation.pod}", observed)
    status = pod.get("status", {})
    node = pod["spec"].get("nodeName")
    condition = _scheduled_condition(pod)
    wrong: list[str] = []
    if expectation.phase is not None:
        observed["phase"] = status.get("phase")
        if status.get("phase") != expectation.phase:
            wrong.append(f"phase {status.get('phase')}{_waiting(pod)}")
    if expectation.scheduled is not None:
        observed["scheduled"] = bool(node)
        if bool(node) != expectation.scheduled:
            wrong.append(f"bound to {node}" if node else f"not scheduled: {_reason(condition)}")
    if expectation.node is not None:
        observed["node"] = context.variables.canonical(node or "")
        if node != expectation.node:
            wrong.append(f"bound to {node}" if node else f"not scheduled: {_reason(condition)}")
    if expectation.pending is not None:
        pending = expectation.pending
        observed["pending"] = condition.get("reason") if condition else None
        if node:
            wrong.append(f"bound to {node}")
        elif condition.get("status") != "False" or condition.get("reason") != pending.reason:
            wrong.append(f"condition PodScheduled {_reason(condition)}")
        elif pending.message and pending.message not in condition.get("message", ""):
            wrong.append(f"the message {condition.get('message', '')!r}")
    return Seen(not wrong, f"pod {expectation.pod}: " + "; ".join(wrong or ["ok"]), observed)


def describe_pod(expectation: PodExpectation) -> str:
    """The expectation in a line."""
    parts = []
    if expectation.phase:
        parts.append(f"in phase {expectation.phase}")
    if expectation.scheduled is not None:
        parts.append("scheduled" if expectation.scheduled else "not scheduled")
    if expectation.node:
        parts.append(f"on node {expectation.node}")
    if expectation.pending:
        message = expectation.pending.message
        parts.append(
            f"pending ({expectation.pending.reason}" + (f": {message})" if message else ")")
        )
    return f"pod {expectation.pod} " + " and ".join(parts)


def _scheduled_condition(pod: Obj) -> dict[str, Any]:
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled":
            return dict(condition)
    return {}


def _reason(condition: dict[str, Any]) -> str:
    if not condition:
        return "not reported yet"
    return f"{condition.get('status')}, {condition.get('reason')}: {condition.get('message', '')}"


def _waiting(pod: Obj) -> str:
    """Why containers wait or failed, so that the message says more than a phase."""
    reasons = []
    for status in pod.get("status", {}).get("containerStatuses", ()):
        state = status.get("state", {})
        for kind in ("waiting", "terminated"):
            if kind in state and state[kind].get("reason") != "Completed":
                detail = state[kind].get("message") or state[kind].get("reason", "")
                reasons.append(f"{status['name']} {kind}: {detail}")
    if not reasons and not pod["spec"].get("nodeName"):
        reasons.append(_reason(_scheduled_condition(pod)))
    return f" ({'; '.join(reasons)})" if reasons else ""
