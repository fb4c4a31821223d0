"""Deployments: how many pods of which template there are, also while they roll."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Query, Ref
from tests.kubesim import kit

WEB = Ref("apps/v1", "Deployment", "web")


def deployment(replicas: int = 1, **spec: Any) -> Obj:
    return kit.workload("Deployment", replicas=replicas, **spec)


def rolling(surge: int | str, unavailable: int | str) -> Obj:
    return {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}


def change(scope: ReferenceScope, **spec: Any) -> None:
    scope.patch(WEB, {"spec": spec})


def update(scope: ReferenceScope, version: str = "2", **spec: Any) -> None:
    change(scope, template={"metadata": {"labels": {"version": version}}}, **spec)


def versions(scope: ReferenceScope) -> str:
    """The versions of all pods that are not being deleted."""
    there = [
        pod for pod in scope.find(Query("v1", "Pod")) if "deletionTimestamp" not in pod["metadata"]
    ]
    return "".join(sorted(pod["metadata"]["labels"]["version"] for pod in there))


def status(scope: ReferenceScope) -> Obj:
    found: Obj = kit.get(scope, WEB)["status"]
    return found


def test_its_status_counts_pods(scope: ReferenceScope, hollow: ReferenceScope) -> None:
    hollow.create(deployment(2))
    counts = {"replicas": 2, "updatedReplicas": 2, "unavailableReplicas": 2}
    assert status(hollow) == {**counts, "observedGeneration": 1}
    scope.create(deployment(2))
    kit.until(scope, lambda: status(scope).get("availableReplicas") == 2)
    counts = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    assert status(scope) == {**counts, "observedGeneration": 1}


@pytest.mark.parametrize("strategy", [rolling(1, 0), rolling(0, 1), rolling("25%", "25%")])
def test_all_pods_are_replaced_where_they_get_ready(scope: ReferenceScope, strategy: Obj) -> None:
    scope.create(deployment(4, **strategy))
    kit.until(scope, lambda: status(scope).get("availableReplicas") == 4)
    update(scope)
    kit.until(scope, lambda: versions(scope) == "2222")
    update(scope, "1")
    kit.until(scope, lambda: versions(scope) == "1111")
    assert len(scope.find(Query("apps/v1", "ReplicaSet"))) == 2


@pytest.mark.parametrize(
    ("surge", "unavailable", "wanted"),
    [
        (1, 0, "11112"),
        (0, 1, "1112"),
        (0, 2, "1122"),
        (2, 1, "111222"),
        ("30%", "30%", "111222"),
        ("0%", "10%", "1112"),
        ("100%", 0, "11112222"),
    ],
)
def test_a_rolling_update_waits_for_pods_that_do_not_get_ready(
    hollow: ReferenceScope, surge: int | str, unavailable: int | str, wanted: str
) -> None:
    hollow.create(deployment(4, **rolling(surge, unavailable)))
    update(hollow)
    assert versions(hollow) == wanted


def test_pods_that_cannot_run_go_before_those_that_do(scope: ReferenceScope) -> None:
    scope.create(deployment(2))
    kit.until(scope, lambda: status(scope).get("availableReplicas") == 2)
    nowhere = {"spec": {"nodeSelector": {"no": "where"}}}
    change(scope, template=nowhere)
    assert versions(scope) == "111"
    update(scope, "3")
    assert versions(scope) == "113"
    assert status(scope)["availableReplicas"] == 2
    change(scope, replicas=1)
    assert versions(scope) == "13"


def test_a_replica_set_replaces_pods_that_are_gone_or_have_ended(hollow: ReferenceScope) -> None:
    hollow.create(kit.workload("ReplicaSet", replicas=2))
    one, other = (Ref.of(pod) for pod in hollow.find(Query("v1", "Pod")))
    hollow.delete(one)
    hollow.patch(other, {"status": {"phase": "Failed"}}, "status")
    assert versions(hollow) == "111"
    replica_set = kit.get(hollow, Ref("apps/v1", "ReplicaSet", "web"))
    assert replica_set["status"]["replicas"] == 2


def test_a_replica_set_that_cannot_be_made_is_told(hollow: ReferenceScope) -> None:
    made = deployment()
    made["metadata"]["name"] = "w" * 250
    hollow.create(made)
    [told] = kit.events(hollow, "ReplicaSetCreateError")
    assert "must be no more than 253" in told
