"""StatefulSets: which of their pods there are, and in which order they come and go."""

from __future__ import annotations

from typing import Any

from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Query, Ref
from tests.kubesim import kit

WEB = Ref("apps/v1", "StatefulSet", "web")


def stateful_set(replicas: int = 1, **spec: Any) -> Obj:
    return kit.workload("StatefulSet", grace=30, replicas=replicas, **spec)


def change(scope: ReferenceScope, **spec: Any) -> None:
    scope.patch(WEB, {"spec": spec})


def pod(ordinal: int) -> Ref:
    return Ref("v1", "Pod", f"web-{ordinal}")


def ready(scope: ReferenceScope, *ordinals: int) -> None:
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"status": {"phase": "Running", "conditions": conditions}}
    for ordinal in ordinals:
        scope.patch(pod(ordinal), status, "status")


def shown(scope: ReferenceScope) -> str:
    """Ordinal and version of each pod, with a dash behind those that are being deleted."""
    there = sorted(scope.find(Query("v1", "Pod")), key=lambda pod: str(pod["metadata"]["name"]))
    return " ".join(
        pod["metadata"]["name"].removeprefix("web-")
        + f"v{pod['metadata']['labels']['version']}"
        + ("-" if "deletionTimestamp" in pod["metadata"] else "")
        for pod in there
    )


def remove(scope: ReferenceScope, ordinal: int) -> None:
    scope.delete(pod(ordinal), 0)


def test_its_pods_have_names_and_labels_of_their_own(hollow: ReferenceScope) -> None:
    hollow.create(stateful_set(serviceName="all", ordinals={"start": 3}))
    made = kit.get(hollow, pod(3))
    assert made["metadata"]["ownerReferences"][0]["name"] == "web"
    assert made["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "3"
    assert made["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "web-3"
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("web-3", "all")


def test_in_parallel_no_pod_waits(hollow: ReferenceScope) -> None:
    hollow.create(stateful_set(3, podManagementPolicy="Parallel"))
    assert shown(hollow) == "0v1 1v1 2v1"
    change(hollow, replicas=1)
    assert shown(hollow) == "0v1 1v1- 2v1-"


def test_a_last_pod_that_is_not_ready_waits_for_one_before_that_is_not(
    hollow: ReferenceScope,
) -> None:
    hollow.create(stateful_set(2))
    ready(hollow, 0)
    hollow.patch(pod(0), {"status": {"conditions": []}}, "status")
    change(hollow, replicas=0)
    assert shown(hollow) == "0v1 1v1"
    ready(hollow, 0)
    assert shown(hollow) == "0v1 1v1-"


def test_a_pod_that_is_gone_or_has_ended_comes_again(hollow: ReferenceScope) -> None:
    hollow.create(stateful_set(1))
    first = kit.get(hollow, pod(0))["metadata"]["uid"]
    remove(hollow, 0)
    second = kit.get(hollow, pod(0))["metadata"]["uid"]
    assert first != second
    hollow.patch(pod(0), {"status": {"phase": "Succeeded"}}, "status")
    assert kit.get(hollow, pod(0))["metadata"]["uid"] not in {first, second}


def test_an_update_goes_from_the_last_pod_on(hollow: ReferenceScope) -> None:
    hollow.create(stateful_set(2))
    ready(hollow, 0)
    ready(hollow, 1)
    before = kit.get(hollow, WEB)["status"]
    assert before["currentRevision"] == before["updateRevision"]
    change(hollow, template={"metadata": {"labels": {"version": "2"}}})
    assert shown(hollow) == "0v1 1v1-"
    remove(hollow, 1)
    assert shown(hollow) == "0v1 1v2"
    assert kit.get(hollow, WEB)["status"]["currentRevision"] == before["currentRevision"]
    ready(hollow, 1)
    assert shown(hollow) == "0v1- 1v2"
    remove(hollow, 0)
    ready(hollow, 0)
    status = kit.get(hollow, WEB)["status"]
    assert status["currentRevision"] == status["updateRevision"] != before["currentRevision"]
    assert {status[f"{of}Replicas"] for of in ("ready", "available", "current", "updated")} == {2}


def test_with_on_delete_only_new_pods_are_of_the_new_template(hollow: ReferenceScope) -> None:
    hollow.create(stateful_set(1, updateStrategy={"type": "OnDelete"}))
    ready(hollow, 0)
    change(hollow, template={"metadata": {"labels": {"version": "2"}}})
    assert shown(hollow) == "0v1"
    remove(hollow, 0)
    assert shown(hollow) == "0v2"
