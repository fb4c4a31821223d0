from __future__ import annotations

from typing import Any

from conformance import probe
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.seam.values import Obj, Query, Ref
from tests.targets.reference import kit

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


def test_job_with_own_and_shared_devices_completes_and_releases_all(scope: ReferenceScope) -> None:
    """The Job of the Kubernetes documentation on DRA: one own and one shared device each."""
    scope.create(kit.template("own"))
    scope.create(kit.claim("shared"))
    spec = kit.pod(
        "",
        once("container0", "separate"),
        once("container1", "common"),
        once("container2", "common"),
        templates={"separate": "own"},
        claims={"common": "shared"},
    )
    scope.create(job(spec, completions=10, parallelism=2))
    views: dict[str, tuple[str, str, str]] = {}
    most = 0

    def completed() -> bool:
        nonlocal most
        active = [pod for pod in pods(scope) if pod["status"]["phase"] == "Running"]
        most = max(most, len(active))
        for pod in active:
            name = pod["metadata"]["name"]
            if scope.observe.container(name, "container2") is not None:
                seen = [kit.seen(scope, name, f"container{index}") for index in range(3)]
                views[name] = (seen[0][0], seen[1][0], seen[2][0])
        return bool(kit.get(scope, JOB)["status"].get("succeeded") == 10)

    kit.until(scope, completed, 120)
    assert most == 2
    assert len(views) == 10
    assert {(shared, again) for _, shared, again in views.values()} == {
        ("/dev/nvidia0", "/dev/nvidia0")
    }
    assert all(own != shared for own, shared, _ in views.values())
    status = kit.get(scope, JOB)["status"]
    assert [item["type"] for item in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert "active" not in status
    [left] = kit.claims_of(scope)
    assert left["status"] == {}
    assert scope.observe.cdi_claims() == {}


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


def test_deleted_job_takes_its_pods_along(scope: ReferenceScope) -> None:
    scope.create(kit.template("own"))
    scope.create(job(kit.pod("", kit.container("c", "g"), templates={"g": "own"}), parallelism=2))
    kit.until(scope, lambda: len(pods(scope)) == 2)
    scope.delete(JOB)
    kit.until(scope, lambda: not pods(scope) and not kit.claims_of(scope))


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


def test_job_fails_when_too_many_pods_failed(scope: ReferenceScope) -> None:
    scope.create(job(kit.pod("", kit.container(), nodeSelector={"no": "where"}), backoffLimit=0))
    [pod] = pods(scope)
    ref = kit.pod_ref(pod["metadata"]["name"])
    scope.patch(ref, {"status": {"phase": "Failed"}}, "status")
    status = kit.get(scope, JOB)["status"]
    assert [item["type"] for item in status["conditions"]] == ["FailureTarget", "Failed"]
    assert status["conditions"][1]["reason"] == "BackoffLimitExceeded"
