from __future__ import annotations

from conformance.targets.reference.scope import ReferenceScope
from tests.targets.reference import kit


def test_generated_claim_looks_as_the_claim_controller_makes_it(scope: ReferenceScope) -> None:
    made = kit.template("single")
    made["spec"]["metadata"] = {"labels": {"app": "x"}, "annotations": {"example.com/a": "b"}}
    scope.create(made)
    pod = scope.create(kit.pod("pod0", templates={"gpu": "single"}))
    kit.runs(scope, "pod0")

    [claim] = kit.claims_of(scope)
    uid = pod["metadata"]["uid"]
    meta = claim["metadata"]
    assert meta["generateName"] == "pod0-gpu-"
    assert meta["name"].startswith("pod0-gpu-")
    assert len(meta["name"]) == len("pod0-gpu-") + 5
    assert meta["labels"] == {"app": "x"}
    assert meta["annotations"] == {
        "example.com/a": "b",
        "resource.kubernetes.io/pod-claim-name": "gpu",
    }
    assert meta["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "pod0", "uid": uid, "controller": True}
    ]
    assert meta["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "pod0", "uid": uid}]
    [term] = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term == {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": [kit.NODE]}]
    }
    assert kit.get(scope, kit.pod_ref("pod0"))["status"]["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": meta["name"]}
    ]


def test_long_names_are_cut_in_proportion(scope: ReferenceScope) -> None:
    scope.create(kit.template("single"))
    scope.create(kit.pod("p" * 60, templates={"g" * 30: "single"}))
    kit.runs(scope, "p" * 60)
    [claim] = kit.claims_of(scope)
    # 60 and 30 of 92 characters ("<pod>-<claim>-") in 57, as the controller divides them.
    assert claim["metadata"]["generateName"] == "p" * 37 + "-" + "g" * 18


def test_deleted_generated_claim_is_made_again_for_a_waiting_pod(scope: ReferenceScope) -> None:
    scope.create(kit.template("many", kit.request(count=5)))
    scope.create(kit.pod("p", templates={"g": "many"}))
    [first] = kit.claims_of(scope)
    scope.delete(kit.claim_ref(first["metadata"]["name"]))
    [second] = kit.claims_of(scope)
    assert second["metadata"]["name"] != first["metadata"]["name"]
