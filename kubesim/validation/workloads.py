"""Checks of workloads (Jobs, and those that select their pods by labels) and of priority classes.

Sources: validation/validation.go of pkg/apis/batch, pkg/apis/apps and pkg/apis/scheduling, as far
as scenarios reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kube.values import Obj
from kubesim.validation import names
from kubesim.validation.errors import FieldError, forbidden, invalid, not_supported, required
from kubesim.validation.pod import check_spec

_JOB_RESTART_POLICIES: Final = ("OnFailure", "Never")
_STATEFUL_KEEPS: Final = ("volumeClaimTemplates", "serviceName", "podManagementPolicy")
_NEGATIVE: Final = "must be greater than or equal to 0"
_HIGHEST: Final = 1_000_000_000
_POLICIES: Final = ("Never", "PreemptLowerPriority")


def check_job(job: Obj) -> Iterator[FieldError]:
    spec = job["spec"]
    yield from _check_not_negative(spec, "parallelism", "completions", "backoffLimit")
    template = spec["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    yield from names.check_labels(labels, "spec.template.metadata.labels")
    yield from check_spec(template["spec"], "spec.template.spec")
    policy = template["spec"].get("restartPolicy") or ""
    path = "spec.template.spec.restartPolicy"
    if policy in {"", "Always"}:
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in _JOB_RESTART_POLICIES:
        yield not_supported(path, policy, _JOB_RESTART_POLICIES)


def check_selecting(workload: Obj) -> Iterator[FieldError]:
    """Check a new workload that selects its pods by labels, defaults applied.

    See ``ValidateDaemonSetSpec``, ``ValidateDeploymentSpec``, ``ValidateReplicaSetSpec`` and
    ``ValidateStatefulSetSpec``.
    """
    spec, kind = workload["spec"], workload["kind"].lower()
    yield from _check_not_negative(spec, "replicas")
    selector = spec.get("selector")
    match_labels = (selector or {}).get("matchLabels") or {}
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if selector is not None and not any(selector.values()):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    if selector is None or not match_labels.items() <= labels.items():
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, detail)
    yield from check_spec(spec["template"]["spec"], "spec.template.spec")
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ("Always",))
    if kind == "deployment":
        yield from _check_strategy(spec["strategy"])
    elif kind == "statefulset":
        yield from _check_stateful_set(spec)


def check_change(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Check a changed workload that selects its pods by labels."""
    stateful = new["kind"] == "StatefulSet"
    for field in ("selector", *(_STATEFUL_KEEPS if stateful else ())):
        if new["spec"].get(field) != old["spec"].get(field):
            yield invalid(f"spec.{field}", new["spec"].get(field), "field is immutable")
    yield from check_selecting(new)


def _check_stateful_set(spec: Obj) -> Iterator[FieldError]:
    policy, strategy = spec["podManagementPolicy"], spec["updateStrategy"]
    if policy not in {"OrderedReady", "Parallel"}:
        detail = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", policy, detail)
    if strategy.get("type") not in {"RollingUpdate", "OnDelete"}:
        yield invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")
    elif strategy["type"] == "OnDelete" and strategy.get("rollingUpdate") is not None:
        path, detail = "spec.updateStrategy.rollingUpdate", "only allowed for updateStrategy"
        yield invalid(path, strategy["rollingUpdate"], f"{detail} 'RollingUpdate'")


def _check_strategy(strategy: Obj) -> Iterator[FieldError]:
    """Check what ``ValidateDeploymentStrategy`` checks."""
    path, rolling = "spec.strategy.rollingUpdate", strategy.get("rollingUpdate") or {}
    if strategy["type"] == "Recreate":
        if strategy.get("rollingUpdate") is not None:
            yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    elif strategy["type"] != "RollingUpdate":
        yield not_supported("spec.strategy.type", strategy["type"], ("Recreate", "RollingUpdate"))
    else:
        for field in ("maxUnavailable", "maxSurge"):
            yield from _check_count_or_percent(rolling[field], f"{path}.{field}")
        if all(str(amount).rstrip("%") == "0" for amount in rolling.values()):
            value = rolling["maxUnavailable"]
            yield invalid(f"{path}.maxUnavailable", value, "may not be 0 when `maxSurge` is 0")


def _check_count_or_percent(value: int | str, path: str) -> Iterator[FieldError]:
    """Check what ``ValidatePositiveIntOrPercent`` checks."""
    if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
        detail = "a valid percent string must be a numeric string followed by an ending '%'"
        yield invalid(path, value, detail)
    elif isinstance(value, int) and value < 0:
        yield invalid(path, value, _NEGATIVE)


def _check_not_negative(spec: Obj, *fields: str) -> Iterator[FieldError]:
    for field in fields:
        if spec.get(field) is not None and spec[field] < 0:
            yield invalid(f"spec.{field}", spec[field], _NEGATIVE)


def check_priority_class(new: Obj) -> Iterator[FieldError]:
    if new["metadata"]["name"].startswith("system-"):
        text = "priority class names with 'system-' prefix are reserved for system use only"
        yield forbidden("metadata.name", text)
    elif new["value"] > _HIGHEST:
        text = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        yield forbidden("value", text)
    if new["preemptionPolicy"] not in _POLICIES:
        yield not_supported("preemptionPolicy", new["preemptionPolicy"], _POLICIES)


def check_priority_class_update(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Check that a change leaves the value and the policy as they are."""
    if new.get("value") != old["value"]:
        yield forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old["preemptionPolicy"]:
        yield invalid("preemptionPolicy", new.get("preemptionPolicy"), "field is immutable")
