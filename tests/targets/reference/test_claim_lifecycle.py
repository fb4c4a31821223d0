from __future__ import annotations

import pytest

from conformance import probe
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from conformance.targets.seam.values import ApiError, Ref
from tests.targets.reference import kit
from tests.targets.reference.conftest import new_scope


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


def test_pods_of_one_template_get_claims_and_devices_of_their_own(scope: ReferenceScope) -> None:
    scope.create(kit.template("single"))
    scope.create(kit.pod("a", templates={"gpu": "single"}))
    scope.create(kit.pod("b", templates={"gpu": "single"}))
    kit.runs(scope, "a", "b")
    assert len(kit.claims_of(scope)) == 2
    assert kit.seen(scope, "a") != kit.seen(scope, "b")


def test_generated_claim_goes_with_its_pod_and_frees_the_device(scope: ReferenceScope) -> None:
    scope.create(kit.template("all", kit.request(count=4)))
    scope.create(kit.pod("first", templates={"g": "all"}))
    kit.runs(scope, "first")
    scope.create(kit.pod("second", templates={"g": "all"}))
    scope.pause(30)
    assert kit.phase(scope, "second") == "Pending"

    scope.delete(kit.pod_ref("first"))
    kit.gone(scope, kit.pod_ref("first"))
    kit.runs(scope, "second")
    [claim] = kit.claims_of(scope)
    assert claim["metadata"]["ownerReferences"][0]["name"] == "second"


def test_generated_claim_goes_when_its_pod_completes(scope: ReferenceScope) -> None:
    scope.create(kit.template("single"))
    once = kit.container("ctr0", "g", command=probe.EXIT)
    scope.create(kit.pod("p", once, templates={"g": "single"}, restartPolicy="Never"))
    kit.until(scope, lambda: kit.phase(scope, "p") == "Succeeded")
    assert kit.claims_of(scope) == []
    assert scope.observe.cdi_claims() == {}


def test_shared_claim_keeps_its_devices_until_the_last_pod_goes(scope: ReferenceScope) -> None:
    scope.create(kit.claim("shared"))
    for name in ("a", "b"):
        scope.create(kit.pod(name, claims={"g": "shared"}))
    kit.runs(scope, "a", "b")
    assert kit.seen(scope, "a") == kit.seen(scope, "b")
    claim = kit.get(scope, kit.claim_ref("shared"))
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["a", "b"]

    scope.delete(kit.pod_ref("a"))
    kit.gone(scope, kit.pod_ref("a"))
    after = kit.get(scope, kit.claim_ref("shared"))
    assert after["status"]["allocation"] == claim["status"]["allocation"]
    assert [user["name"] for user in after["status"]["reservedFor"]] == ["b"]

    scope.delete(kit.pod_ref("b"))
    kit.gone(scope, kit.pod_ref("b"))
    released = kit.get(scope, kit.claim_ref("shared"))
    assert released["status"] == {}
    assert "finalizers" not in released["metadata"]
    assert scope.observe.cdi_claims() == {}


def test_claim_in_use_outlives_its_deletion_until_its_pod_is_gone(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    kit.runs(scope, "p")
    scope.delete(kit.claim_ref("c"))
    scope.pause(60)
    assert "deletionTimestamp" in kit.get(scope, kit.claim_ref("c"))["metadata"]
    assert kit.phase(scope, "p") == "Running"
    scope.delete(kit.pod_ref("p"))
    kit.gone(scope, kit.pod_ref("p"), kit.claim_ref("c"))


def test_long_names_are_cut_in_proportion(scope: ReferenceScope) -> None:
    scope.create(kit.template("single"))
    scope.create(kit.pod("p" * 60, templates={"g" * 30: "single"}))
    kit.runs(scope, "p" * 60)
    [claim] = kit.claims_of(scope)
    # 60 and 30 of 92 characters ("<pod>-<claim>-") in 57, as the controller divides them.
    assert claim["metadata"]["generateName"] == "p" * 37 + "-" + "g" * 18


def test_missing_template_is_said_in_an_event_and_made_up_for(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p", templates={"g": "later"}))
    [message] = kit.events(scope, "FailedResourceClaimCreation")
    assert message == (
        'PodResourceClaim g: resource claim template "later": '
        'resourceclaimtemplate.resource.k8s.io "later" not found'
    )
    scope.create(kit.template("later"))
    kit.runs(scope, "p")


def test_deleted_generated_claim_is_made_again_for_a_waiting_pod(scope: ReferenceScope) -> None:
    scope.create(kit.template("many", kit.request(count=5)))
    scope.create(kit.pod("p", templates={"g": "many"}))
    [first] = kit.claims_of(scope)
    scope.delete(kit.claim_ref(first["metadata"]["name"]))
    [second] = kit.claims_of(scope)
    assert second["metadata"]["name"] != first["metadata"]["name"]


def test_pod_placed_by_hand_is_reserved_by_the_controller(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    scope.create(kit.pod("first", claims={"g": "c"}))
    kit.runs(scope, "first")
    scope.create(kit.pod("second", claims={"g": "c"}, nodeName=kit.NODE))
    kit.runs(scope, "second")
    users = kit.get(scope, kit.claim_ref("c"))["status"]["reservedFor"]
    assert [user["name"] for user in users] == ["first", "second"]


def test_claim_of_another_namespace_is_not_used(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    scope.create(kit.claim("c"))
    other = new_scope(target, "other")
    other.create(kit.pod("p", claims={"g": "c"}))
    other.pause(60)
    assert kit.phase(other, "p") == "Pending"
    assert other.observe.container("p", "ctr0") is None


def test_namespace_goes_with_all_it_has(scope: ReferenceScope) -> None:
    scope.create(kit.template("single"))
    scope.create(kit.pod("p", templates={"g": "single"}))
    kit.runs(scope, "p")
    namespace = Ref("v1", "Namespace", "ns")
    scope.delete(namespace)
    assert kit.get(scope, namespace)["status"]["phase"] == "Terminating"
    kit.gone(scope, namespace)
    assert kit.claims_of(scope) == []
    assert scope.observe.cdi_claims() == {}


def test_admin_access_needs_a_label_on_the_namespace(scope: ReferenceScope) -> None:
    wanted = kit.claim("c", kit.request(adminAccess=True, allocationMode="All"))
    with pytest.raises(ApiError, match="admin access to devices requires"):
        scope.create(wanted)
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    scope.patch(Ref("v1", "Namespace", "ns"), label)
    scope.create(wanted)
    scope.create(kit.claim("user"))
    scope.create(kit.pod("user", claims={"g": "user"}))
    scope.create(kit.pod("admin", claims={"g": "c"}))
    kit.runs(scope, "user", "admin")
    assert len(kit.seen(scope, "admin")) == 4
