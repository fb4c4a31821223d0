"""Pods of higher priority: who makes room for them, and for what nobody does."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj, Ref
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope

CLASSES = "scheduling.k8s.io/v1"


@pytest.fixture
def scope(open_target: Open) -> ReferenceScope:
    """A cluster without nodes, with classes of three priorities."""
    made = new_scope(open_target(nodes=()))
    for name, value in {"low": -5, "high": 100, "highest": 200}.items():
        made.create(priority_class(name, value))
    made.create(priority_class("polite", 100, preemptionPolicy="Never"))
    return made


def priority_class(name: str, value: int, **more: Any) -> Obj:
    kind = {"apiVersion": CLASSES, "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **more}


def worker(name: str, cpu: str, priority: str = "", **spec: Any) -> Obj:
    wanted: dict[str, Any] = {"resources": {"requests": {"cpu": cpu}}}
    spec = {"terminationGracePeriodSeconds": 0, **spec}
    if priority:
        spec["priorityClassName"] = priority
    return kit.pod(name, kit.container("ctr0", **wanted), **spec)


def node(name: str) -> Obj:
    made = kit.node(name)
    made["status"]["allocatable"] = {"cpu": "8", "pods": "10"}
    return made


def place(scope: ReferenceScope, name: str) -> str | None:
    found = scope.get(kit.pod_ref(name))
    return None if found is None else found["spec"].get("nodeName")


def test_only_as_many_pods_go_as_must(scope: ReferenceScope) -> None:
    scope.create(node("a"))
    for name, priority in {"one": "", "two": "low", "three": ""}.items():
        scope.create(worker(name, "2", priority))
    scope.create(worker("urgent", "4", "high"))
    assert place(scope, "urgent") == "a"
    assert (place(scope, "one"), place(scope, "two"), place(scope, "three")) == ("a", None, "a")
    [event] = kit.events(scope, "Preempted")
    assert event.startswith("Preempted by pod ")
    assert event.endswith(" on node a")


def test_the_node_with_the_least_important_victims_is_taken(scope: ReferenceScope) -> None:
    for name, priority in {"a": "high", "b": ""}.items():
        scope.create(node(name))
        scope.create(worker(f"on-{name}", "8", priority))
    scope.create(worker("urgent", "8", "highest"))
    assert (place(scope, "on-a"), place(scope, "urgent")) == ("a", "b")


def test_equal_priority_and_the_policy_never_preempt_nobody(scope: ReferenceScope) -> None:
    scope.create(node("a"))
    scope.create(worker("first", "8", "high"))
    scope.create(worker("equal", "8", "high"))
    scope.create(worker("second", "8", "polite"))
    assert place(scope, "first") == "a"
    assert "No preemption victims found for incoming pod" in kit.why_pending(scope, "equal")
    assert "preemptionPolicy=Never" in kit.why_pending(scope, "second")


def test_room_is_kept_while_a_victim_ends(scope: ReferenceScope) -> None:
    scope.create(node("a"))
    scope.create(worker("slow", "8", terminationGracePeriodSeconds=20))
    scope.create(worker("urgent", "8", "high"))
    urgent = kit.get(scope, kit.pod_ref("urgent"))
    assert urgent["status"]["nominatedNodeName"] == "a"
    scope.create(worker("thief", "1"))
    scope.delete(kit.pod_ref("slow"), grace_seconds=0)
    assert (place(scope, "urgent"), place(scope, "thief")) == ("a", None)
    assert "nominatedNodeName" not in kit.get(scope, kit.pod_ref("urgent"))["status"]


def test_a_class_that_is_not_there_is_refused(scope: ReferenceScope) -> None:
    with pytest.raises(ApiError, match="no PriorityClass with name nothing was found") as caught:
        scope.create(worker("p", "1", "nothing"))
    assert caught.value.code == 403


def test_classes_are_checked_and_do_not_change(scope: ReferenceScope) -> None:
    with pytest.raises(ApiError, match="maximum allowed value") as caught:
        scope.create(priority_class("too-high", 1_000_000_001))
    assert [cause.field for cause in caught.value.causes] == ["value"]
    with pytest.raises(ApiError, match="may not be changed"):
        scope.patch(Ref(CLASSES, "PriorityClass", "low"), {"value": 7})


def test_the_default_class_is_that_of_pods_without(scope: ReferenceScope) -> None:
    assert kit.get(scope, _made(scope, "before"))["spec"]["priority"] == 0
    scope.create(priority_class("usual", 50, globalDefault=True))
    spec = kit.get(scope, _made(scope, "after"))["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (50, "usual")


def _made(scope: ReferenceScope, name: str) -> Ref:
    scope.create(kit.pod(name))
    return kit.pod_ref(name)
