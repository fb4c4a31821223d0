"""Taints NoExecute of nodes: which pods go, and when."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Ref
from tests.kubesim import kit

TAINT = {"key": "k", "value": "v", "effect": "NoExecute"}


def toleration(**more: Any) -> Obj:
    return {"key": "k", "operator": "Exists", **more}


def for_seconds(seconds: int) -> Obj:
    return toleration(effect="NoExecute", tolerationSeconds=seconds)


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([toleration(effect="NoSchedule")], 0),
        ([toleration(operator="Equal", value="other")], 0),
        ([for_seconds(-1)], 0),
        ([for_seconds(20)], 20),
        (
            [
                for_seconds(40),
                for_seconds(20),
            ],
            40,
        ),
    ],
    ids=str,
)
def test_a_pod_goes_when_its_toleration_ends(
    scope: ReferenceScope, tolerations: list[Obj], seconds: int
) -> None:
    scope.create(kit.pod("p", tolerations=tolerations, terminationGracePeriodSeconds=0))
    kit.runs(scope, "p")
    scope.patch(Ref("v1", "Node", kit.NODE), {"spec": {"taints": [TAINT]}})
    if seconds:
        scope.pause(seconds - 1)
        assert kit.phase(scope, "p") == "Running"
        scope.pause(2)
    assert scope.get(kit.pod_ref("p")) is None


def test_a_pod_that_tolerates_the_taint_stays(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p", tolerations=[toleration()]))
    kit.runs(scope, "p")
    scope.patch(Ref("v1", "Node", kit.NODE), {"spec": {"taints": [TAINT]}})
    scope.pause(1_000)
    assert kit.phase(scope, "p") == "Running"


def test_a_new_controller_manager_counts_anew(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p", tolerations=[for_seconds(20)]))
    kit.runs(scope, "p")
    scope.patch(Ref("v1", "Node", kit.NODE), {"spec": {"taints": [TAINT]}})
    scope.pause(15)
    scope.faults.disturb("kube-controller-manager", "restart")
    scope.pause(15)
    assert "deletionTimestamp" not in kit.get(scope, kit.pod_ref("p"))["metadata"]
    scope.pause(6)
    kit.gone(scope, kit.pod_ref("p"))
