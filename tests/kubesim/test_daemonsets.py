"""DaemonSets: where their pods are made, where they may go on, and when they are replaced."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Query, Ref
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope

SET = Ref("apps/v1", "DaemonSet", "web")


@pytest.fixture
def scope(open_target: Open) -> ReferenceScope:
    """Two nodes without a kubelet."""
    made = new_scope(open_target(nodes=()))
    for name in ("a", "b"):
        made.create(kit.node(name))
    return made


def daemon_set(**pod_spec: Any) -> Obj:
    made = kit.workload("DaemonSet")
    made["spec"]["template"]["spec"] |= pod_spec
    return made


def places(scope: ReferenceScope) -> list[str]:
    """Nodes of its pods; those that are being deleted with a minus."""
    return sorted(
        f"{'-' * ('deletionTimestamp' in pod['metadata'])}{pod['spec'].get('nodeName')}"
        for pod in scope.find(Query("v1", "Pod", {"app": "web"}))
    )


def taint(scope: ReferenceScope, name: str, *effects: str) -> None:
    taints = [{"key": "k", "effect": effect} for effect in effects]
    scope.patch(Ref("v1", "Node", name), {"spec": {"taints": taints}})


def test_a_taint_keeps_new_pods_away_and_drives_out_others_by_no_execute_only(
    scope: ReferenceScope,
) -> None:
    taint(scope, "b", "NoSchedule")
    scope.create(daemon_set())
    assert places(scope) == ["a"]
    taint(scope, "a", "NoSchedule")
    assert places(scope) == ["a"]
    status = kit.get(scope, SET)["status"]
    assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (0, 1)
    taint(scope, "a", "NoExecute")
    kit.until(scope, lambda: places(scope) in ([], ["-a"]))


def test_a_pod_is_replaced_once_it_is_gone(scope: ReferenceScope) -> None:
    scope.create(daemon_set())
    [first, _] = scope.find(Query("v1", "Pod", {"app": "web"}))
    held = Ref.of(first)
    scope.patch(held, {"metadata": {"finalizers": ["example.com/wait"]}})
    scope.delete(held)
    assert len(places(scope)) == 2
    scope.patch(held, {"metadata": {"finalizers": None}})
    assert places(scope) == ["a", "b"]


def test_pods_are_admitted_as_any_other(scope: ReferenceScope) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7}
    scope.create({**high, "metadata": {"name": "high"}})
    scope.create(daemon_set(priorityClassName="high"))
    assert {pod["spec"]["priority"] for pod in scope.find(Query("v1", "Pod"))} == {7}


def test_pods_that_are_refused_are_told_and_made_when_they_may_be(scope: ReferenceScope) -> None:
    hard = {"requests.example.com/gpu": "1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    scope.create({**quota, "spec": {"hard": hard}})
    wants = kit.container(resources={"limits": {"example.com/gpu": "1"}})
    made = daemon_set()
    made["spec"]["template"]["spec"]["containers"] = [wants]
    scope.create(made)
    assert len(places(scope)) == 1
    [told] = kit.events(scope, "FailedCreate")
    assert "exceeded quota: q" in told
    scope.delete(Ref("v1", "ResourceQuota", "q"))
    assert len(places(scope)) == 2
