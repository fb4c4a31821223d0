from __future__ import annotations

from typing import Any

from conformance import probe
from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Query, Ref
from tests.kubesim import kit

JOB = Ref("batch/v1", "Job", "job")


def job(template: Obj, **spec: Any) -> Obj:
    template["spec"].setdefault("restartPolicy", "Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {
            **spec,
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": template["spec"]},
        },
    }


def once(name: str = "ctr0", *claims: str) -> Obj:
    return kit.container(name, *claims, command=probe.EXIT)


def pods(scope: ReferenceScope) -> list[Obj]:
    return scope.find(Query("v1", "Pod", {"batch.kubernetes.io/job-name": "job"}))


def test_pods_of_a_job_are_labelled_and_owned(scope: ReferenceScope) -> None:
    created = scope.create(job(kit.pod("", kit.container())))
    uid = created["metadata"]["uid"]
    [pod] = pods(scope)
    meta = pod["metadata"]
    assert meta["name"].startswith("job-")
    assert meta["labels"] == {
        "app": "x",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "job",
        "controller-uid": uid,
        "job-name": "job",
    }
    assert meta["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert meta["ownerReferences"][0]["blockOwnerDeletion"] is True
    status = kit.get(scope, JOB)["status"]
    assert (status["active"], status["ready"]) == (1, 1)


def test_pod_of_a_job_that_was_deleted_is_replaced(scope: ReferenceScope) -> None:
    scope.create(job(kit.pod("", kit.container())))
    [first] = pods(scope)
    scope.delete(kit.pod_ref(first["metadata"]["name"]))

    def replaced() -> bool:
        names = [pod["metadata"]["name"] for pod in pods(scope)]
        return bool(names) and first["metadata"]["name"] not in names

    kit.until(scope, replaced)


def test_pods_that_are_not_needed_any_more_are_deleted(scope: ReferenceScope) -> None:
    scope.create(job(kit.pod("", kit.container()), completions=4, parallelism=3))
    kit.until(scope, lambda: len(pods(scope)) == 3)
    scope.patch(JOB, {"spec": {"parallelism": 1}})
    assert sum("deletionTimestamp" not in pod["metadata"] for pod in pods(scope)) == 1
    scope.patch(JOB, {"spec": {"suspend": True}})
    kit.until(scope, lambda: not pods(scope))


def test_suspended_job_has_no_pods_until_it_is_resumed(scope: ReferenceScope) -> None:
    scope.create(job(kit.pod("", once()), suspend=True))
    scope.pause(10)
    assert pods(scope) == []
    scope.patch(JOB, {"spec": {"suspend": False}})
    kit.until(scope, lambda: kit.get(scope, JOB)["status"].get("succeeded") == 1)
    conditions = [item["type"] for item in kit.get(scope, JOB)["status"]["conditions"]]
    assert conditions == ["SuccessCriteriaMet", "Complete"]


def test_job_fails_when_too_many_pods_failed(scope: ReferenceScope) -> None:
    scope.create(job(kit.pod("", kit.container(), nodeSelector={"no": "where"}), backoffLimit=0))
    [pod] = pods(scope)
    ref = kit.pod_ref(pod["metadata"]["name"])
    scope.patch(ref, {"status": {"phase": "Failed"}}, "status")
    status = kit.get(scope, JOB)["status"]
    assert [item["type"] for item in status["conditions"]] == ["FailureTarget", "Failed"]
    assert status["conditions"][1]["reason"] == "BackoffLimitExceeded"
